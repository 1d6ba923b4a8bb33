#include "compiler/target/artifact.h"
#include "compiler/base/mem.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

static recipe_slot slots[] = {
    {SLOT_POINTER, 0, 3},   {SLOT_STRIDE, 7, 3}, {SLOT_DIM, 200, 0},    {SLOT_SCALAR, 0, 65535},
    {SLOT_GRID, 2, 0},      {SLOT_WORKSPACE, 1, 0}, {SLOT_COUNTER, 0, 0},
    {SLOT_ASSERT, 0, 0},    {SLOT_FIRST, 2, 0},
};
static recipe_step steps[] = {
    {.object = 1, .symbol = "pack", .grid_map = {0, 1, 2}, .scratch_bytes = 1 << 20},
    {.object = 0,
     .symbol = "attention_fwd",
     .nslots = sizeof slots / sizeof *slots,
     .slot = slots,
     .programs = {.factor = 1, .more = 1, .nterms = 1, .dim = {2}, .per = {64}},
     .grid_map = {2, 0, 1},
     .reversed = 4,
     .block_threads = 128,
     .shared_bytes = 98304},
};
static recipe_count workspaces[] = {
    {.factor = 64},
    {.factor = 2, .more = 1, .nterms = 2, .dim = {3, 4}, .per = {4, 1024}},
};
static code_object objects[] = {
    {OBJECT_ELF, 4, (const uint8_t *)"\177ELF"},
    {OBJECT_TIR, 0, (const uint8_t *)""},
};
static const char *asserts[] = {"n > 0 (line 3)", ""};
static artifact_print prints[] = {
    {.text = "s (a.tw:4)", .dtype = DT_I32, .held = DT_I32},
    {.text = "t (a.tw:5)",
     .dtype = DT_BF16,
     .held = DT_F32,
     .rank = 2,
     .shape = {5, 20},
     .stride = {32, 1}},
};
static const artifact sample = {
    .nobjects = 2,
    .nsteps = 2,
    .nworkspaces = 2,
    .ncounters = 1,
    .nasserts = 2,
    .nprints = 2,
    .print = prints,
    .object = objects,
    .step = steps,
    .workspace = workspaces,
    .assert_text = asserts,
    .launch_text = "launch {\n}\n",
    .ir_ops = 120,
    .registers = 255,
    .spill_bytes = 16,
    .code_bytes = 4,
};

typedef struct bytes {
    arena a;
    const uint8_t *at;
    size_t n;
} bytes;

static void setup(bytes *b)
{
    arena_init(&b->a);
    artifact_write(&sample, &b->a, &b->at, &b->n);
}

static void teardown(bytes *b)
{
    arena_release(&b->a);
    ck_assert_int_eq(mem_live(), 0);
}

START_TEST(everything_reads_back)
{
    artifact *art = NULL;
    bytes b;

    setup(&b);
    ck_assert_int_eq(artifact_read(&b.a, b.at, b.n, &art), TW_OK);
    ck_assert_uint_eq(art->nobjects, 2);
    ck_assert_int_eq(art->object[0].kind, OBJECT_ELF);
    ck_assert_mem_eq(art->object[0].bytes, "\177ELF", 4);
    ck_assert_int_eq(art->object[1].kind, OBJECT_TIR);
    ck_assert_uint_eq(art->nsteps, 2);
    const recipe_step *s = &art->step[1];
    ck_assert_str_eq(s->symbol, "attention_fwd");
    ck_assert_uint_eq(s->nslots, steps[1].nslots);
    for (uint32_t i = 0; i < s->nslots; i++) {
        ck_assert_int_eq(s->slot[i].kind, slots[i].kind);
        ck_assert_int_eq(s->slot[i].index, slots[i].index);
        ck_assert_int_eq(s->slot[i].param, slots[i].param);
    }
    ck_assert_int_eq((int)s->programs.more, 1);
    ck_assert_int_eq(s->programs.per[0], 64);
    ck_assert_int_eq((int)art->step[0].programs.factor, 0);
    ck_assert_int_eq(s->grid_map[0], 2);
    ck_assert_int_eq(s->reversed, 4);
    ck_assert_int_eq(s->shared_bytes, 98304);
    ck_assert_int_eq(art->step[0].scratch_bytes, 1 << 20);
    ck_assert_int_eq(art->workspace[1].nterms, 2);
    ck_assert_int_eq(art->workspace[1].per[1], 1024);
    ck_assert_str_eq(art->assert_text[0], asserts[0]);
    ck_assert_int_eq(art->nprints, 2);
    ck_assert_str_eq(art->print[1].text, prints[1].text);
    ck_assert_int_eq(art->print[1].held, DT_F32);
    ck_assert_int_eq(art->print[1].shape[1], 20);
    ck_assert_int_eq(art->print[1].stride[0], 32);
    ck_assert_str_eq(art->launch_text, sample.launch_text);
    ck_assert_int_eq(art->spill_bytes, 16);
    teardown(&b);
}
END_TEST

/* What was read writes as it was: no field is forgotten on either side. */
START_TEST(writing_what_was_read_gives_the_same_bytes)
{
    artifact *art = NULL;
    const uint8_t *again;
    size_t n;
    bytes b;

    setup(&b);
    ck_assert_int_eq(artifact_read(&b.a, b.at, b.n, &art), TW_OK);
    artifact_write(art, &b.a, &again, &n);
    ck_assert_uint_eq(n, b.n);
    ck_assert_mem_eq(again, b.at, n);
    teardown(&b);
}
END_TEST

START_TEST(a_cut_file_is_refused)
{
    artifact *art = NULL;
    bytes b;

    setup(&b);
    for (size_t n = 0; n < b.n; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, so that a read past the end is seen */
        memcpy(cut, b.at, n);
        uint8_t *exact = realloc(cut, n ? n : 1);
        ck_assert_int_eq(artifact_read(&b.a, exact, n, &art), TW_E_STORE);
        free(exact);
    }
    ck_assert_ptr_null(art);
    teardown(&b);
}
END_TEST

START_TEST(a_changed_bit_is_refused)
{
    artifact *art = NULL;
    bytes b;

    setup(&b);
    uint8_t *copy = arena_dup(&b.a, b.at, b.n);
    for (size_t bit = 0; bit < b.n * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(artifact_read(&b.a, copy, b.n, &art) == TW_E_STORE, "bit %zu", bit);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    teardown(&b);
}
END_TEST

enum { HEADER_BYTES = 40, SIZE_AT = 16, HASH_AT = 24 };

static void seal(uint8_t *p, size_t n)
{
    hash128 h = hash_mem(p + HEADER_BYTES, n - HEADER_BYTES);
    uint64_t size = n - HEADER_BYTES;

    for (int i = 0; i < 8; i++) {
        p[SIZE_AT + i] = (uint8_t)(size >> 8 * i);
        p[HASH_AT + i] = (uint8_t)(h.lo >> 8 * i);
        p[HASH_AT + 8 + i] = (uint8_t)(h.hi >> 8 * i);
    }
}

/* With a right hash over wrong contents, whatever is accepted is within its limits and writes as it
 * was read. Under the address sanitizer this also shows that nothing is read past the end. */
START_TEST(wrong_contents_under_a_right_hash)
{
    uint64_t state = 1;
    bytes b;

    setup(&b);
    for (int round = 0; round < 20000; round++) {
        arena_mark mark = arena_save(&b.a);
        artifact *art = NULL;
        size_t n = b.n;

        state = state * 6364136223846793005u + 1442695040888963407u;
        if (state >> 62 == 0)
            n = HEADER_BYTES + 1 + (size_t)(state >> 32) % (b.n - HEADER_BYTES - 1);
        uint8_t *copy = malloc(n);
        memcpy(copy, b.at, n);
        for (int k = 0; k < 1 + (int)(state >> 60); k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            size_t at = HEADER_BYTES + (size_t)(state >> 40) % (n - HEADER_BYTES);
            copy[at] = (uint8_t)(state >> 32);
        }
        seal(copy, n);
        if (artifact_read(&b.a, copy, n, &art) == TW_OK) {
            const uint8_t *again;
            size_t m;

            artifact_write(art, &b.a, &again, &m);
            ck_assert_uint_eq(m, n);
            ck_assert_mem_eq(again, copy, n);
            for (uint32_t i = 0; i < art->nsteps; i++)
                ck_assert_uint_lt(art->step[i].object, art->nobjects);
        }
        free(copy);
        arena_rewind(&b.a, mark);
    }
    teardown(&b);
}
END_TEST

Suite *test_suite(void);
Suite *test_suite(void)
{
    Suite *s = suite_create("artifact");
    TCase *t = tcase_create("bytes");

    tcase_add_test(t, everything_reads_back);
    tcase_add_test(t, writing_what_was_read_gives_the_same_bytes);
    tcase_add_test(t, a_cut_file_is_refused);
    tcase_add_test(t, a_changed_bit_is_refused);
    tcase_add_test(t, wrong_contents_under_a_right_hash);
    suite_add_tcase(s, t);
    return s;
}
