#ifndef TW_TESTS_CUDA_RIG_H
#define TW_TESTS_CUDA_RIG_H
/* The CUDA driver over a fake libcuda: runtime_fixture's context, devices "cuda:N", and artifacts
 * whose PTX is written by hand. */
#include "runtime/cuda/cuda_device.h"
#include "tests/gpu/fake_cuda.h"
#include "tests/support/runtime_fixture.h"

extern const fake_api *cuda_fake;
extern fake_control *fake_is;

void cuda_setup(void);     /* a driver of today, two GPUs: of capability 9.0 and 8.9 */
void cuda_setup_old(void); /* of CUDA 11.0: no cuGetProcAddress, no calls that came later */
void cuda_teardown(void);  /* asserts that everything was given back */

/* The next call of this name ("" for any), or its n-th from now, gives result. */
void fake_fails(const char *call, int n, int result);
void fake_breaks(const char *call, int result); /* and its context is of no use then */

/* A code path "sm_80" of family cuda, for builds and tests without the real ones: its artifacts
 * have the slots that rig_slots says, of kernel `add` (runtime_fixture.h), and PTX that names its
 * entry. */
extern const target rig_target;
extern recipe_slot rig_slots[8];
extern uint32_t rig_nslots, rig_ncounters, rig_nworkspaces;
extern recipe_step rig_step; /* what a step of it starts from: threads, shared memory */
extern const char *rig_ptx;  /* NULL: right for `add` */
extern atomic_int rig_compiles;

/* Device "cuda", kernel `add`, and its tensors x and y of RIG_N elements in memory of the device.
 */
enum { RIG_N = 1000 };
extern tw_device *rig_dev;
extern tw_kernel *rig_kernel;
extern float *rig_x, *rig_y;
extern int64_t rig_shape[1];
extern DLTensor rig_tx, rig_ty; /* what a launch takes */
void rig_setup(void);
void rig_setup_old(void);
void rig_teardown(void);
void rig_open(void);
void rig_reopen(const char *spec); /* the same on another device, or anew */
void rig_tensors(void);            /* new ones */
DLTensor rig_tensor(void *p);
tw_status rig_launch(void);
tw_status rig_launch_on(CUstream s);

/* What a block does whose assert fails: values told only if there are any. The asserts of `add`
 * are "x is not negative (line 7)" and "index {0} of {1}, {2} (line 9)". */
void rig_fails(uint64_t record, uint32_t index, const int32_t program[3], const int32_t *value);

/* From now on `add` gets a workspace and a counter, and writes to them; rig_seen: where they were
 * at the last launch, and what was in the counter. */
void rig_with_workspace(void);
extern uint64_t rig_seen[3];

#endif
