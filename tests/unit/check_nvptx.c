#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/base/guard.h"
#include "compiler/base/mem.h"
#include "compiler/ir/irtext.h"
#include "compiler/target/target.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

typedef struct bench {
    arena a;
    intern names;
    diag_list diags;
    const target *t;
    const char *text;
    artifact *art;
} bench;

/* What is looked at is what a store would give back. */
static tw_status compile(void *arg)
{
    bench *s = arg;
    const uint8_t *bytes;
    size_t size;

    intern_init(&s->names, &s->a);
    const source *src = source_new(&s->a, "test.sched", s->text, strlen(s->text));
    ir_module *m = ir_parse(&s->a, &s->names, src, &s->diags);
    if (!m)
        return TW_E_SOURCE;
    target_input in = {.module = m, .diags = &s->diags};
    TRY(s->t->compile(s->t, &in, &s->a, &s->art));
    artifact_write(s->art, &s->a, &bytes, &size);
    return artifact_read(&s->a, bytes, size, &s->art);
}

static tw_status run(bench *s, const char *target_name, const char *text)
{
    *s = (bench){.t = target_find(target_name), .text = text};
    arena_init(&s->a);
    diag_init(&s->diags, &s->a);
    return error_thrown(guard_run(compile, s));
}

static const char *const copy_text =
    "level 2 warps=2\n"
    "#plain = shared(row=0)\n"
    "#b = blocked(regs=[4], lanes=[32], warps=[2], order=[0])\n"
    "kernel @copy<N>(in %x : view<f32, 1>[N] unit align=16, out %y : view<f32, 1>[N],\n"
    "                %s : f32, dim %n : i32 = N) {\n"
    "    %buffer = alloc offset=256 : buf<f32, [3, 256]> #plain\n"
    "    %size = const.i 256 : i32\n"
    "    %id = program_id 0 : i32\n"
    "    %at = mul %id, %size : i32\n"
    "    %few = le %at, %size : i1\n"
    "    assert %few \"at most two programs\"\n"
    "    %a = load %x, %at extent=[256] inside=0 : f32[256] #b\n"
    "    store %y, %at, %a extent=[256] inside=1\n"
    "    return\n"
    "}\n";

/* GPU-03: the version of PTX is the oldest that knows the capability (PTX ISA, "Release notes"), so
 * that every driver that runs the GPU takes it. */
START_TEST(every_capability_gives_its_ptx)
{
    static const char *const names[] = {"sm_80", "sm_86",  "sm_87", "sm_89",
                                        "sm_90", "sm_100", "sm_120"};
    static const char *const version[] = {"7.0", "7.1", "7.4", "7.8", "7.8", "8.6", "8.7"};
    char wanted[32];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bench s;
        ck_assert_int_eq(run(&s, names[i], copy_text), TW_OK);
        snprintf(wanted, sizeof wanted, ".target %s\n", names[i]);
        ck_assert_int_eq(s.art->object->kind, OBJECT_PTX);
        ck_assert_ptr_nonnull(strstr((const char *)s.art->object->bytes, wanted));
        snprintf(wanted, sizeof wanted, ".version %s\n", version[i]);
        ck_assert_ptr_nonnull(strstr((const char *)s.art->object->bytes, wanted));
        arena_release(&s.a);
    }
    ck_assert_int_eq(mem_live(), 0);
}
END_TEST

START_TEST(the_recipe_names_what_the_entry_takes)
{
    static const struct {
        int kind, index, param;
    } slots[] = {{SLOT_POINTER, 0, 0}, {SLOT_POINTER, 0, 1}, {SLOT_STRIDE, 0, 1},
                 {SLOT_DIM, 0, 0},     {SLOT_GRID, 0, 0},    {SLOT_GRID, 1, 0},
                 {SLOT_GRID, 2, 0},    {SLOT_FIRST, 0, 0},   {SLOT_FIRST, 1, 0},
                 {SLOT_FIRST, 2, 0},   {SLOT_ASSERT, 0, 0}};
    bench s;

    ck_assert_int_eq(run(&s, "sm_80", copy_text), TW_OK);
    const recipe_step *step = s.art->step;
    ck_assert_int_eq(step->nslots, sizeof slots / sizeof *slots);
    for (uint32_t i = 0; i < step->nslots; i++) {
        ck_assert_int_eq(step->slot[i].kind, slots[i].kind);
        ck_assert_int_eq(step->slot[i].index, slots[i].index);
        ck_assert_int_eq(step->slot[i].param, slots[i].param);
    }
    ck_assert_int_eq(step->block_threads, 64);
    ck_assert_int_eq(step->shared_bytes, 256 + 3 * 1024);
    ck_assert_int_eq(s.art->nasserts, 1);
    ck_assert_str_eq(s.art->assert_text[0], "at most two programs (test.sched:11)");
    arena_release(&s.a);
}
END_TEST

/* One that tells values tells the program, too; the host puts them in the place of the braces. */
START_TEST(asserts_with_values)
{
    static const char *const text =
        "level 2 warps=1\n"
        "kernel @k(%n : i32) {\n"
        "    %two = const.i 2 : i32\n"
        "    %few = le %n, %two : i1\n"
        "    assert %few, %n, %two \"index {0} is outside of {1}, not {2} nor {x}\"\n"
        "    assert %few \"{0} is no value\"\n"
        "    return\n"
        "}\n";
    bench s;

    ck_assert_int_eq(run(&s, "sm_80", text), TW_OK);
    ck_assert_str_eq(s.art->assert_text[0],
                     "index {0} is outside of {1}, not {2} nor {x} (test.sched:5)");
    ck_assert_str_eq(s.art->assert_text[1], "{0} is no value (test.sched:6)");
    ck_assert_uint_eq(s.art->step->nslots, 8); /* n, the grid, the first program, the record */
    const char *ptx = (const char *)s.art->object->bytes;
    ck_assert_ptr_nonnull(strstr(ptx, "atom.relaxed.gpu.global.cas.b32"));
    ck_assert_ptr_nonnull(strstr(ptx, "fence."));
    arena_release(&s.a);
}
END_TEST

static int count_of(const char *text, const char *what)
{
    int n = 0;

    while ((text = strstr(text, what))) {
        n++;
        text += strlen(what);
    }
    return n;
}

/* What rows and strides give is a number of 64 bits from the start: each is widened, then
 * multiplied, and no product of 32 bits is widened behind it. */
START_TEST(offsets_have_64_bits)
{
    static const char *const text =
        "level 2 warps=1\n"
        "#b = blocked(regs=[1, 4], lanes=[4, 8], warps=[1, 1], order=[1, 0])\n"
        "kernel @far<M, N>(in %x : view<f32, 2>[M, N], out %y : view<f32, 2>[M, N], %row : i32,\n"
        "                  dim %m : i32 = M, dim %n : i32 = N) {\n"
        "    %zero = const.i 0 : i32\n"
        "    %a = load %x, %row, %zero extent=[4, 32] inside=3 : f32[4, 32] #b\n"
        "    store %y, %row, %zero, %a extent=[4, 32] inside=3\n"
        "    return\n"
        "}\n";
    bench s;

    ck_assert_int_eq(run(&s, "sm_80", text), TW_OK);
    const char *ptx = (const char *)s.art->object->bytes;
    ck_assert_msg(count_of(ptx, "mul.lo.s64") + count_of(ptx, "mad.lo.s64") >= 4, "%s", ptx);
    ck_assert_msg(count_of(ptx, "mul.lo.s32") + count_of(ptx, "mad.lo.s32") == 0, "%s", ptx);
    ck_assert_msg(count_of(ptx, "mul.wide") == 0, "%s", ptx);
    arena_release(&s.a);
}
END_TEST

START_TEST(what_it_cannot_do_is_said)
{
    static const char *const engines = "level 2 warps=1\n"
                                       "kernel @k() {\n"
                                       "    fence.async\n"
                                       "    return\n"
                                       "}\n";
    static const char *const sine = "level 2 warps=1\n"
                                    "kernel @k(%x : f64) {\n"
                                    "    %s = sin %x : f64\n"
                                    "    return\n"
                                    "}\n";
    bench s;

    ck_assert_int_eq(run(&s, "sm_80", engines), TW_E_INTERNAL);
    ck_assert_ptr_nonnull(strstr(tw_last_error()->text, "'fence.async' is not for this code path"));
    arena_release(&s.a);
    ck_assert_int_eq(run(&s, "sm_80", sine), TW_E_UNSUPPORTED);
    ck_assert_str_eq(s.diags.all.at[0]->text, "the CUDA targets have no sin of f64 yet");
    arena_release(&s.a);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("nvptx");
    TCase *t = tcase_create("nvptx");

    tcase_add_test(t, every_capability_gives_its_ptx);
    tcase_add_test(t, the_recipe_names_what_the_entry_takes);
    tcase_add_test(t, asserts_with_values);
    tcase_add_test(t, offsets_have_64_bits);
    tcase_add_test(t, what_it_cannot_do_is_said);
    suite_add_tcase(suite, t);
    return suite;
}
