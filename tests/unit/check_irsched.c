/* Each rule of docs/IR.md about level 2 broken once, and kept once. */
#include "compiler/ir/layout.h"
#include "tests/support/ir_fixture.h"
#include <check.h>
#include <string.h>

/* A kernel of 4 warps around statements: what they may use. */
static const char *wrap(const char *statements)
{
    return arena_printf(
        &ir_arena,
        "level 2 warps=4\n"
        "#acc = mma(warps=[4, 1])\n#two = mma(warps=[2, 2])\n#a = mma_a(warps=[4, 1])\n"
        "#a2 = mma_a(warps=[2, 2])\n"
        "#rows = slice(#acc, dim=1)\n#cols = slice(#acc, dim=0)\n#accT = trans(#acc, perm=[1, 0])\n"
        "#four = lanes(#acc, dim=1)\n"
        "#flat = blocked(regs=[4], lanes=[32], warps=[4], order=[0])\n"
        "#half = blocked(regs=[1, 4], lanes=[1, 32], warps=[4, 1], order=[1, 0])\n"
        "#wide = blocked(regs=[1, 2], lanes=[1, 32], warps=[4, 1], order=[1, 0])\n"
        "#sw = shared(row=128)\n#swT = trans(#sw, perm=[1, 0])\n#raw = shared(row=0)\n"
        "kernel @k<N, M>(in %%x : view<bf16, 2>[N, M] unit align=16, in %%l : view<bf16, 2>[N, "
        "M],\n"
        "    inout %%y : view<f32, 2>[N, M], %%f : f32, %%h : bf16, dim %%n : i32 = N,\n"
        "    dim %%m : i32 = M) {\n"
        "%%i0 = const.i 0 : i32\n"
        "%%t = splat %%f : f32[64, 64] #acc\n%%r = splat %%f : f32[64] #rows\n"
        "%%c = splat %%f : f32[64] #cols\n%%p = splat %%h : bf16[64, 64] #acc\n"
        "%%buf = alloc offset=0 : buf<bf16, [2, 64, 64]> #sw\n"
        "%%s = buffer.slot %%buf, %%i0 : buf<bf16, [1, 64, 64]> #sw\n"
        "%%fb = alloc offset=16384 : buf<f32, [1, 64, 64]> #raw\n"
        "%%fs = buffer.slot %%fb, %%i0 : buf<f32, [1, 64, 64]> #raw\n"
        "%%bar = mbar.alloc offset=32768 count=2 arrivals=1 : mbar\n"
        "%s\nreturn }\n",
        statements);
}

typedef struct wrong_text {
    enum diag_id id;
    const char *text, *says;
} wrong_text;

static const char *const right[] = {
    "%q = trans %t perm=[1, 0] : f32[64, 64] #accT\n%b = trans %q perm=[1, 0] : f32[64, 64] #acc",
    "%q = reduce_sum %t axis=1 : f32[64] #rows\n%e = expand_dims %q axis=1 : f32[64, 1] #acc\n"
    "%w = broadcast %e : f32[64, 64] #acc",
    "%q = reduce_sum %c axis=0 : f32",
    "%q = partial_sum %t axis=1 : f32[64, 4] #four\n%w = reduce_sum %q axis=1 : f32[64] #rows\n"
    "%e = expand_dims %r axis=1 : f32[64, 1] #four\n%b = broadcast %e : f32[64, 4] #four",
    "%q = mma.sum %p : f32[64] #rows",
    "%q = scan_sum %t axis=1 : f32[64, 64] #acc",
    "%q = convert %p : bf16[64, 64] #a\n%m1 = mma %q, %s, %t tf32=0 : f32[64, 64] #acc",
    "%m1 = mma %p, %s, %t tf32=0 : f32[64, 64] #acc", /* the map of mma_a */
    "%T = buffer.trans %s perm=[1, 0] : buf<bf16, [1, 64, 64]> #swT\n"
    "%m1 = mma %s, %T, %t tf32=0 : f32[64, 64] #acc",
    "%m1 = mma %fs, %fs, %t tf32=1 : f32[64, 64] #acc",
    "%d = dot %fs, %fs, %t : f32[64, 64] #acc",
    "copy.async %x, %i0, %i0, %s extent=[64, 64] inside=0 bytes=16",
    "copy.bulk %x, %i0, %i0, %s, %bar, %i0 extent=[64, 64] inside=0",
    "%i = arange 0 : i32[64] #rows\n%g = load %y, %i, %i0 extent=[64, 64] inside=0 : "
    "f32[64, 64] #acc",
    "%z = splat %f : f32[512] #flat\n%w = reshape %z : f32[4, 128] #half\n",
    "%v = buffer.view %fs : buf<bf16, [1, 128, 64]> #raw",
    "%q = lt %r, %r : i1[64] #rows\n%any = vote.any %q : i1\nif %any {\nbarrier.warp\nyield } else "
    "{\nyield }",
    "%w = wgmma %s, %s, %t tf32=0 : f32[64, 64] #acc\nwgmma.commit\n"
    "%v = wgmma.wait %w pending=0 : f32[64, 64] #acc",
    "role first=0 warps=4 registers=0 {\n%q = splat %f : f32[64, 64] #acc\nyield }",
};

static const wrong_text wrong[] = {
    /* layouts on types */
    {DIAG_IR_SYNTAX, "%a = splat %f : f32[64, 64]", "a layout"},
    {DIAG_IR_NAME, "%a = splat %f : f32[64, 64] #none", "no layout '#none'"},
    {DIAG_IR_OP, "%a = splat %f : f32[64, 64] #sw", "not one of shared memory"},
    {DIAG_IR_LAYOUT, "%a = splat %f : f32[64, 60] #acc", "multiples"},
    {DIAG_IR_LAYOUT, "%a = splat %f : f32[32, 64] #acc", "multiples"},
    {DIAG_IR_LAYOUT, "%a = splat %f : f32[64] #acc", "number of dimensions"},
    {DIAG_IR_LAYOUT,
     "role first=0 warps=2 registers=0 {\n%a = splat %f : f32[64, 64] #acc\nyield }", "warps"},
    /* operations of level 1 */
    {DIAG_IR_OP, "%a = splat %f : f32[64, 64] #two\n%b = add %t, %a : f32[64, 64] #acc",
     "one type"},
    {DIAG_IR_OP, "%a = add %t, %t : f32[64, 64] #two", "gives f32[64, 64] #acc here"},
    {DIAG_IR_OP,
     "%a = splat %f : f32[64, 64] #two\n%b = lt %a, %a : i1[64, 64] #two\n"
     "%d = where %b, %t, %t : f32[64, 64] #acc",
     "layout of the other operands"},
    {DIAG_IR_OP, "%a = reduce_sum %t axis=1 : f32[64] #cols", "do not belong together"},
    {DIAG_IR_OP, "%a = reduce_sum %t axis=0 : f32[64] #cols", "axis in one warp"},
    {DIAG_IR_OP, "%a = mma.sum %t : f32[64] #rows", "takes f16 or bf16"},
    {DIAG_IR_OP, "%e = splat %h : bf16[64, 64] #wide\n%a = mma.sum %e : f32[64] #rows",
     "the layout mma_a"},
    {DIAG_IR_OP, "%e = splat %h : bf16[64, 64] #two\n%a = mma.sum %e : f32[64] #rows",
     "the layout mma_a"},
    {DIAG_IR_OP, "%e = splat %h : bf16[64, 24] #acc\n%a = mma.sum %e : f32[64] #rows",
     "a multiple of 16"},
    {DIAG_IR_OP, "%a = mma.sum %p : f32[64] #cols", "gives f32[64] #rows here"},
    {DIAG_IR_OP, "%a = partial_sum %t axis=2 : f32[64, 4] #four", "one of the tile's"},
    {DIAG_IR_OP, "%a = partial_sum %t axis=0 : f32[8, 64] #four", "axis in one warp"},
    {DIAG_IR_OP, "%a = partial_sum %p axis=1 : bf16[64, 4] #four", "32 or 64 bits"},
    {DIAG_IR_OP, "%a = partial_sum %t axis=1 : f32[64, 8] #four", "gives f32[64, 4] #four here"},
    {DIAG_IR_OP,
     "%w = splat %f : f32[64, 64] #wide\n%a = partial_sum %w axis=1 : f32[64, 32] #four",
     "has the layout lanes"},
    {DIAG_IR_LAYOUT, "%a = splat %f : f32[64, 8] #four", "an element for each lane"},
    {DIAG_IR_OP, "%a = scan_sum %t axis=0 : f32[64, 64] #acc", "axis in one warp"},
    {DIAG_IR_OP, "%a = expand_dims %r axis=0 : f32[1, 64] #acc", "do not belong together"},
    {DIAG_IR_OP, "%a = trans %t perm=[1, 0] : f32[64, 64] #acc", "do not belong together"},
    {DIAG_IR_OP,
     "%a = expand_dims %r axis=1 : f32[64, 1] #acc\n%b = broadcast %a : f32[64, 64] #two",
     "one layout"},
    {DIAG_IR_OP, "%z = splat %f : f32[512] #flat\n%w = reshape %z : f32[4, 128] #wide",
     "in its thread"},
    {DIAG_IR_OP,
     "%i = arange 0 : i32[64] #cols\n%g = load %y, %i, %i0 extent=[64, 64] inside=0 : "
     "f32[64, 64] #acc",
     "layout of its dimension"},
    {DIAG_IR_OP, "%i = arange 0 : i32[64] #cols\nstore %y, %i, %i0, %t extent=[64, 64] inside=0",
     "layout of its"},
    {DIAG_IR_OP, "%d = dot %t, %t, %t : f32[64, 64] #acc", "are slots"},
    {DIAG_IR_OP, "%d = dot %s, %fs, %t : f32[64, 64] #acc", "one integer or float type"},
    /* buffers */
    {DIAG_IR_OP, "%a = alloc offset=0 : f32[64] #rows", "gives a buffer"},
    {DIAG_IR_OP, "%a = alloc offset=0 : buf<f32, [64]> #raw", "gives a buffer"},
    {DIAG_IR_OP, "%a = alloc offset=0 : buf<f32, [1, 64, 64]> #acc", "layout of shared memory"},
    {DIAG_IR_OP, "%a = alloc offset=0 : buf<f32, [1, 64, 24]> #sw", "row of the layout divides"},
    {DIAG_IR_OP, "%a = alloc offset=8 : buf<f32, [1, 64, 64]> #raw", "multiple of 16"},
    {DIAG_IR_OP, "%a = alloc offset=64 : buf<f32, [1, 64, 64]> #sw", "multiple of 16"},
    {DIAG_IR_OP, "%a = alloc offset=-2 : buf<f32, [1, 64, 64]> #raw", "1 MiB"},
    {DIAG_IR_OP, "%a = alloc offset=0 : buf<f32, [65, 64, 64]> #raw", "1 MiB"},
    {DIAG_IR_OP, "%a = buffer.slot %buf, %f : buf<bf16, [1, 64, 64]> #sw", "a buffer and an i32"},
    {DIAG_IR_OP, "%a = buffer.trans %buf perm=[1, 0] : buf<bf16, [2, 64, 64]> #swT",
     "takes a slot"},
    {DIAG_IR_OP, "%a = buffer.trans %s perm=[1, 1] : buf<bf16, [1, 64, 64]> #swT", "permutation"},
    {DIAG_IR_OP, "%a = buffer.trans %fs perm=[1, 0] : buf<f32, [1, 64, 64]> #raw", "layout trans"},
    {DIAG_IR_OP, "%a = buffer.view %s : buf<bf16, [1, 32, 128]> #sw", "row=0"},
    {DIAG_IR_OP, "%a = buffer.view %fs : buf<f32, [1, 64, 32]> #raw", "number of bytes"},
    {DIAG_IR_OP, "%a = buffer.load %s : f32[64, 64] #acc", "its extents and type"},
    {DIAG_IR_OP, "%a = buffer.load %buf : bf16[64, 64] #acc", "its extents and type"},
    {DIAG_IR_OP, "buffer.store %s, %t", "its extents and type"},
    /* copies */
    {DIAG_IR_OP, "copy.async %l, %i0, %i0, %s extent=[64, 64] inside=0 bytes=16", "is unit"},
    {DIAG_IR_OP, "copy.async %x, %i0, %i0, %s extent=[64, 64] inside=0 bytes=2", "4, 8 or 16"},
    {DIAG_IR_OP, "copy.async %x, %i0, %i0, %s extent=[64, 32] inside=0 bytes=16", "its extents"},
    {DIAG_IR_OP, "copy.async %x, %i0, %i0, %fs extent=[64, 64] inside=0 bytes=16", "its extents"},
    {DIAG_IR_OP, "copy.async %x, %i0, %i0, %buf extent=[64, 64] inside=0 bytes=16", "its extents"},
    {DIAG_IR_OP,
     "%i = arange 0 : i32[64] #rows\ncopy.async %x, %i, %i0, %s extent=[64, 64] inside=0 bytes=16",
     "indices of a copy are scalars"},
    {DIAG_IR_OP,
     "%v = alloc offset=0 : buf<bf16, [1, 64]> #raw\n"
     "copy.async %x, %i0, %i0, %v extent=[64, 0] inside=0 bytes=16",
     "consecutive elements"},
    {DIAG_IR_OP, "copy.wait pending=65", "between 0 and 64"},
    {DIAG_IR_OP, "copy.bulk %l, %i0, %i0, %s, %bar, %i0 extent=[64, 64] inside=0", "is unit"},
    {DIAG_IR_OP, "copy.bulk %x, %i0, %i0, %s, %i0, %i0 extent=[64, 64] inside=0", "an mbarrier"},
    /* barriers */
    {DIAG_IR_OP, "barrier id=16 warps=0", "0 to 15"},
    {DIAG_IR_OP, "barrier id=0 warps=5", "than the block has"},
    {DIAG_IR_OP, "%q = mbar.alloc offset=4 count=1 arrivals=1 : mbar", "multiple of 8"},
    {DIAG_IR_OP, "%q = mbar.alloc offset=0 count=0 arrivals=1 : mbar", "1 to 64"},
    {DIAG_IR_OP, "%q = mbar.alloc offset=0 count=1 arrivals=0 : mbar", "1048576 arrivals"},
    {DIAG_IR_OP, "mbar.arrive %s, %i0", "an mbarrier"},
    {DIAG_IR_OP, "mbar.expect %bar, %i0 bytes=-1", "1 MiB"},
    {DIAG_IR_OP, "mbar.wait %bar, %i0, %f", "parity"},
    {DIAG_IR_VARYING,
     "%q = lt %r, %r : i1[64] #rows\n%any = vote.any %q : i1\nif %any {\nbarrier id=0 warps=0\n"
     "yield } else {\nyield }",
     "follows from vote.any"},
    {DIAG_IR_VARYING,
     "%q = lt %r, %r : i1[64] #rows\n%any = vote.any %q : i1\n%one = const.i 1 : i32\n"
     "%to = if %any : i32 {\nyield %i0 } else {\nyield %one }\n"
     "for %j = %i0 to %to step %one {\nbarrier id=0 warps=0\nyield }",
     "follows from vote.any"},
    {DIAG_IR_VARYING,
     "%q = lt %r, %r : i1[64] #rows\n%any = vote.any %q : i1\n%one = const.i 1 : i1\n"
     "%last = while iter (%v = %one : i1) {\ncondition %v, %v } do (%w : i1) {\n"
     "copy.async %x, %i0, %i0, %s extent=[64, 64] inside=0 bytes=16\nyield %any }",
     "follows from vote.any"},
    /* products */
    {DIAG_IR_OP, "%m1 = mma %p, %p, %t tf32=0 : f32[64, 64] #acc", "the second a slot"},
    {DIAG_IR_OP, "%m1 = mma %s, %s, %t tf32=1 : f32[64, 64] #acc", "tf32 is 1 for f32"},
    {DIAG_IR_OP, "%m1 = mma %fs, %fs, %t tf32=0 : f32[64, 64] #acc", "tf32 is 1 for f32"},
    {DIAG_IR_OP,
     "%u = splat %f : f32[64, 64] #two\n%z = splat %h : bf16[64, 64] #two\n"
     "%m1 = mma %z, %s, %u tf32=0 : f32[64, 64] #two",
     "layout mma_a"},
    {DIAG_IR_OP,
     "%u = splat %f : f32[64, 64] #wide\n%m1 = mma %s, %s, %u tf32=0 : f32[64, 64] #wide",
     "has a layout mma"},
    {DIAG_IR_OP,
     "%b8 = alloc offset=0 : buf<bf16, [1, 64, 8]> #raw\n%b9 = alloc offset=0 : "
     "buf<bf16, [1, 8, 64]> #raw\n%m1 = mma %b8, %b9, %t tf32=0 : f32[64, 64] #acc",
     "multiple of 16"},
    {DIAG_IR_OP,
     "%u = splat %f : f32[64, 64] #two\n%m1 = wgmma %s, %s, %u tf32=0 : f32[64, 64] #two",
     "four warps of wgmma"},
    {DIAG_IR_OP, "%v = wgmma.wait %t pending=0 : f32[64, 64] #two", "type of its operand"},
    {DIAG_IR_OP, "%v = vote.any %t : i1", "a tile of i1"},
    /* roles */
    {DIAG_IR_OP, "role first=2 warps=3 registers=0 {\nyield }", "warps of the block"},
    {DIAG_IR_OP, "role first=0 warps=4 registers=256 {\nyield }", "255 registers"},
    {DIAG_IR_REGION,
     "role first=0 warps=4 registers=0 {\nrole first=0 warps=4 registers=0 {\nyield }\nyield }",
     "not nested"},
    {DIAG_IR_REGION,
     "role first=0 warps=4 registers=0 {\n%q = add %t, %t : f32[64, 64] #acc\nyield }",
     "tiles from outside"},
    {DIAG_IR_REGION, "role first=0 warps=4 registers=0 {\nyield %f }", "one value of its type"},
    {DIAG_IR_OP,
     "%q = const.i 1 : i1\n%w = if %q : buf<bf16, [1, 64, 64]> #sw {\nyield %s } else {\nyield %s "
     "}",
     "carried values are scalars or tiles"},
};

/* Of whole texts. */
#define BODY "kernel @k(%f : f32) {\nreturn }\n"
static const wrong_text heads[] = {
    {DIAG_IR_SYNTAX, "level 3 " BODY, "from 1 to 2"},
    {DIAG_IR_SYNTAX, "level 2 " BODY, "'warps'"},
    {DIAG_IR_SYNTAX, "level 2 warps=33 " BODY, "from 1 to 32"},
    {DIAG_IR_SYNTAX, "level 2 warps=4 #a = mmx(warps=[4, 1]) " BODY, "blocked, mma"},
    {DIAG_IR_SYNTAX, "level 2 warps=4 #a = mma(warps=[4]) " BODY, "for each dimension"},
    {DIAG_IR_SYNTAX,
     "level 2 warps=4 #a = blocked(regs=[1], lanes=[32, 1], warps=[4], order=[0]) " BODY,
     "for each dimension"},
    {DIAG_IR_LAYOUT, "level 2 warps=4 #a = mma(warps=[0, 1]) " BODY, "1 to 32 warps"},
    {DIAG_IR_LAYOUT, "level 2 warps=4 #a = shared(row=24) " BODY, "row is 128"},
    {DIAG_IR_LAYOUT,
     "level 2 warps=4 #a = blocked(regs=[1], lanes=[5], warps=[4], order=[0]) " BODY, "divide 32"},
    {DIAG_IR_LAYOUT, "level 2 warps=4 #a = mma(warps=[4, 1]) #b = mma(warps=[4, 1]) " BODY,
     "two layouts are equal"},
    {DIAG_IR_NAME, "level 2 warps=4 #a = mma(warps=[4, 1]) #a = mma(warps=[2, 1]) " BODY,
     "one name"},
    {DIAG_IR_NAME, "level 2 warps=4 #a = slice(#b, dim=0) " BODY, "no layout '#b'"},
    {DIAG_IR_LAYOUT, "level 2 warps=4 #a = shared(row=0) #b = slice(#a, dim=0) " BODY,
     "a slice drops"},
    {DIAG_IR_LAYOUT,
     "level 2 warps=4 #a = mma(warps=[4, 1]) #b = trans(#a, perm=[1, 0]) #c = trans(#b, perm=[1, "
     "0]) " BODY,
     "written as one"},
    {DIAG_IR_SYNTAX, "kernel @k(%f : f32) {\n%a = splat %f : f32[64] #a\nreturn }\n", "no layouts"},
    {DIAG_IR_SYNTAX, "kernel @k(%f : f32) {\n%a = alloc offset=0 : buf<f32, [1, 2]> #a\nreturn }\n",
     "no type of this name"},
    {DIAG_IR_OP, "kernel @k(%f : f32) {\nbarrier id=0 warps=0\nreturn }\n", "one of level 2"},
};

static void expect(const wrong_text *w, const char *text)
{
    ck_assert_msg(ir_try(text) == NULL, "accepted:\n%s", w->text);
    enum diag_id id = ir_diags.all.at[0]->id;
    const char *said = ir_messages();
    ck_assert_msg(id == w->id && (!w->says || strstr(said, w->says)), "%s\nwanted %s, %s:\n%s",
                  w->text, diag_name(w->id), w->says ? w->says : "", said);
}

START_TEST(right_statements_stand_and_round_trip)
{
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        ir_module *m = ir_must(wrap(right[i]));
        const char *once = ir_show(m, 0);
        ck_assert_str_eq(ir_show(ir_must(once), 0), once);
        ck_assert_str_eq(ir_show(ir_clone(m, &ir_arena), 0), once);
        const char *plain = ir_show(m, IR_PRINT_PLAIN);
        ck_assert_str_eq(ir_show(ir_must(plain), IR_PRINT_PLAIN), plain);
    }
}
END_TEST

START_TEST(wrong_statements)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect(&wrong[i], wrap(wrong[i].text));
}
END_TEST

START_TEST(wrong_heads)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        expect(&heads[i], heads[i].text);
}
END_TEST

START_TEST(names_and_order_of_layouts_do_not_count)
{
    const char *one = "level 2 warps=4 #a = mma(warps=[4, 1]) #b = mma(warps=[2, 2]) "
                      "kernel @k(%f : f32) { %x = splat %f : f32[64, 64] #a return }";
    const char *two = "level 2 warps=4 #q = mma(warps=[4, 1]) "
                      "kernel @l(%g : f32) { %y = splat %g : f32[64, 64] #q return }";
    const char *other = "level 2 warps=4 #q = mma(warps=[2, 2]) "
                        "kernel @l(%g : f32) { %y = splat %g : f32[64, 64] #q return }";
    const char *wide = "level 2 warps=8 #q = mma(warps=[4, 1]) "
                       "kernel @l(%g : f32) { %y = splat %g : f32[64, 64] #q return }";

    ck_assert(hash_equal(ir_hash(ir_must(one)), ir_hash(ir_must(two))));
    ck_assert(!hash_equal(ir_hash(ir_must(other)), ir_hash(ir_must(two))));
    ck_assert(!hash_equal(ir_hash(ir_must(wide)), ir_hash(ir_must(two))));
}
END_TEST

/* ---- what text cannot express ---- */

START_TEST(damaged_tables_are_refused)
{
    ir_module *m = ir_must(wrap(""));
    ir_fn *fn = m->kernel;

    fn->layouts.at[1]->warps[0] = 0;
    ir_refused(m, DIAG_IR_LAYOUT);
    fn->layouts.at[1]->warps[0] = 4;
    fn->layouts.at[5]->parent = 9;
    ir_refused(m, DIAG_IR_LAYOUT);
    fn->layouts.at[5]->parent = 1;
    fn->warps = 0;
    ir_refused(m, DIAG_IR_LAYOUT);
    fn->warps = 4;
    ir_type *ty = &fn->values.at[ir_first_of(m, OP_SPLAT)->res].type;
    ty->layout = 99;
    ir_refused(m, DIAG_IR_OP);
    ty->layout = 1;
    ck_assert(ir_verify(m, &ir_diags));
    m->level = 1;
    ir_refused(m, DIAG_IR_LAYOUT);
}
END_TEST

START_TEST(builders_give_the_layouts_of_their_results)
{
    ir_module *m = ir_must(wrap(""));
    ir_fn *fn = m->kernel;
    ir_builder b = ir_before(fn, fn->body->last);
    ir_val t = ir_first_of(m, OP_SPLAT)->res;
    uint16_t acc = ir_type_of(fn, t).layout;
    ir_val sum = ir_reduce(&b, OP_REDUCE_SUM, t, 1);

    ck_assert_uint_eq(ir_type_of(fn, sum).layout, layout_slice(fn, acc, 1));
    ck_assert_uint_eq(ir_type_of(fn, ir_expand(&b, sum, 1)).layout, acc);
    ir_val turned = ir_trans(&b, t, (int[]){1, 0});
    ck_assert_uint_eq(ir_type_of(fn, turned).layout, layout_trans(fn, acc, 2, (int[]){1, 0}));
    ir_val slot = ir_buffer_slot(&b, ir_first_of(m, OP_ALLOC)->res, ir_const_int(&b, DT_I32, 1));
    ir_val back = ir_buffer_trans(&b, ir_buffer_trans(&b, slot, (int[]){1, 0}), (int[]){1, 0});
    ck_assert(type_equal(ir_type_of(fn, back), ir_type_of(fn, slot)));
    ir_mma(&b, slot, back, t);
    ir_buffer_load(&b, slot, acc);
    ck_assert_msg(ir_verify(m, &ir_diags), "%s", ir_messages());
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("irsched");
    TCase *tc = tcase_create("irsched");

    tcase_add_checked_fixture(tc, ir_fixture_setup, ir_fixture_teardown);
    tcase_add_test(tc, right_statements_stand_and_round_trip);
    tcase_add_test(tc, wrong_statements);
    tcase_add_test(tc, wrong_heads);
    tcase_add_test(tc, names_and_order_of_layouts_do_not_count);
    tcase_add_test(tc, damaged_tables_are_refused);
    tcase_add_test(tc, builders_give_the_layouts_of_their_results);
    suite_add_tcase(s, tc);
    return s;
}
