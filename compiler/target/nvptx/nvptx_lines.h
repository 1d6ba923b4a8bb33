#ifndef TW_NVPTX_LINES_H
#define TW_NVPTX_LINES_H
/* Instructions by place of explain.h. */
#include "compiler/base/strbuf.h"
#include "compiler/target/llvm/llvm_build.h"

/* Of cx->fn, which is empty yet. The scope is for nv_lines_at. */
LLVMMetadataRef nv_lines_begin(const ll_cx *cx, const char *name);
/* What is built from here on comes from this place. */
void nv_lines_at(const ll_cx *cx, LLVMMetadataRef scope, uint32_t place);
/* Rows code, of PTX that was made so. */
void nv_lines_count(const char *ptx, uint32_t places, arena *a, strbuf *out);

#endif
