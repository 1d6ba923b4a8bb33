#include "compiler/ir/irbuild.h"
#include "compiler/ir/layout.h"
#include "tests/support/ir_fixture.h"
#include "tests/support/layout_cases.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

static ir_fn *fn;
static layout_case cases[LAYOUT_CASES];
static int ncases;

static void setup(void)
{
    ir_fixture_setup();
    ir_module *m = ir_module_new(&ir_arena, &ir_names);
    m->level = 2;
    fn = ir_fn_new(m, "k");
    fn->warps = 8;
    ncases = layout_cases(fn, cases);
}

/* ---- who holds what ---- */

typedef void (*map_check)(const layout_map *map, int64_t elements);

static void each_case(map_check check)
{
    for (int i = 0; i < ncases; i++) {
        layout_map map = layout_must(fn, cases[i].tile, cases[i].warps);
        check(&map, type_elements(cases[i].tile));
    }
}

/* Is this lane and warp the one that counts for its elements (every dim -1 digit is 0)? */
static bool is_first_copy(const layout_map *map, int lane, int warp)
{
    const int number[] = {[PLACE_LANE] = lane, [PLACE_WARP] = warp};

    for (int i = 0; i < map->n; i++) {
        const layout_digit *d = &map->digit[i];
        if (d->dim < 0 && layout_digit_value(map, i, number[d->place]))
            return false;
    }
    return true;
}

static int count[TILE_MAX_ELEMENTS];

static void held_once(const layout_map *map, int64_t n)
{
    memset(count, 0, (size_t)n * sizeof *count);
    for (int w = 0; w < map->warps; w++)
        for (int lane = 0; lane < 32; lane++)
            for (int r = 0; r < layout_registers(map); r++)
                count[layout_number(map, r, lane, w)] += is_first_copy(map, lane, w);
    for (int64_t i = 0; i < n; i++) {
        if (count[i] != 1)
            ck_abort_msg("element %d has %d first copies", (int)i, count[i]);
    }
}

START_TEST(every_element_is_held_and_first_copies_hold_it_once)
{
    ck_assert_int_gt(ncases, 200);
    each_case(held_once);
}
END_TEST

static void distinct_registers(const layout_map *map, int64_t n)
{
    memset(count, 0, (size_t)n * sizeof *count);
    for (int r = 0; r < layout_registers(map); r++)
        ck_assert_int_eq(count[layout_number(map, r, 5, map->warps - 1)]++, 0);
}

START_TEST(a_thread_holds_no_element_twice)
{
    each_case(distinct_registers);
}
END_TEST

static void splits(const layout_map *map, int64_t n)
{
    (void)n;
    for (int d = 0; d < map->rank; d++) {
        int32_t base[TILE_MAX_RANK], at[TILE_MAX_RANK];
        bool lanes = false, warps = false;
        layout_element(map, 0, 0, 0, base);
        for (int i = 0; i < 32 * map->warps; i++) {
            layout_element(map, 0, i % 32, i / 32, at);
            lanes |= i < 32 && at[d] != base[d];
            warps |= i % 32 == 0 && at[d] != base[d];
        }
        ck_assert_int_eq(layout_lanes_along(map, d) > 1, lanes);
        ck_assert_int_eq(layout_warps_along(map, d) > 1, warps);
        for (int r = 1; r < layout_contiguous(map, d); r++) {
            layout_element(map, r, 0, 0, at);
            ck_assert_int_eq(at[d], base[d] + r);
        }
    }
}

START_TEST(splits_count_lanes_and_warps)
{
    each_case(splits);
}
END_TEST

/* ---- the fragments of the matrix instructions (PTX ISA) ---- */

START_TEST(mma_is_the_accumulator_of_m16n8)
{
    ir_type tile = type_tile(DT_F32, 2, (int32_t[]){128, 48});
    tile.layout = layout_mma(fn, 4, 1);
    layout_map map = layout_must(fn, tile, 4);

    ck_assert_int_eq(layout_registers(&map), 4 * 6 * 2);
    for (int w = 0; w < 4; w++)
        for (int lane = 0; lane < 32; lane++)
            for (int r = 0; r < 48; r++) {
                int piece = r / 4, i = r % 4, group = lane >> 2, in_group = lane % 4;
                int row = i < 2 ? group : group + 8, column = in_group * 2 + (i & 1);
                row += 32 * w + piece / 6 * 16;
                column += piece % 6 * 8;
                ck_assert_int_eq(layout_number(&map, r, lane, w), row * 48 + column);
            }
}
END_TEST

START_TEST(mma_a_is_the_left_factor_of_m16n8k16)
{
    ir_type tile = type_tile(DT_BF16, 2, (int32_t[]){32, 32});
    tile.layout = layout_mma_a(fn, 2, 2);
    layout_map map = layout_must(fn, tile, 4);

    for (int w = 0; w < 4; w++)
        for (int lane = 0; lane < 32; lane++)
            for (int r = 0; r < 16; r++) {
                int i = r % 8, group = lane >> 2, in_group = lane % 4;
                int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
                int column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0) + r / 8 * 16;
                ck_assert_int_eq(layout_number(&map, r, lane, w), (row + w % 2 * 16) * 32 + column);
                ck_assert_int_eq(is_first_copy(&map, lane, w), w < 2);
            }
}
END_TEST

/* Row sums of an accumulator in parts: column j is of the lanes whose number is j modulo 4. */
START_TEST(lanes_of_mma_are_four_a_row)
{
    ir_type tile = type_tile(DT_F32, 2, (int32_t[]){128, 4});
    tile.layout = layout_lanes(fn, layout_mma(fn, 4, 1), 1);
    layout_map map = layout_must(fn, tile, 4);
    const char *why;

    ck_assert_int_eq(layout_registers(&map), 4);
    for (int w = 0; w < 4; w++)
        for (int lane = 0; lane < 32; lane++)
            for (int r = 0; r < 4; r++)
                ck_assert_int_eq(layout_number(&map, r, lane, w),
                                 (32 * w + 8 * r + lane / 4) * 4 + lane % 4);
    tile.shape[1] = 8;
    ck_assert(!layout_map_of(fn, tile, 4, &map, &why));
    ck_assert_str_eq(why, "the tile has an element for each lane along the dimension");
    tile.shape[1] = 4;
    tile.layout = layout_lanes(fn, layout_mma(fn, 2, 2), 1);
    ck_assert(!layout_map_of(fn, tile, 4, &map, &why));
    ck_assert_str_eq(why, "lanes are counted along a dimension that no warp splits");
}
END_TEST

START_TEST(an_accumulator_is_a_left_factor_when_columns_are_not_split)
{
    for (int wm = 1; wm <= 8; wm *= 2) {
        ir_type acc = type_tile(DT_F32, 2, (int32_t[]){32 * wm, 96}), a = acc;
        int reg_of[96];
        acc.layout = layout_mma(fn, wm, 1);
        a.layout = layout_mma_a(fn, wm, 1);
        layout_map from = layout_must(fn, acc, wm), to = layout_must(fn, a, wm);
        ck_assert(layout_same_threads(&from, &to, reg_of));
        for (int r = 0; r < 96; r++)
            ck_assert_int_eq(reg_of[r], r);
    }
    ir_type acc = type_tile(DT_F32, 2, (int32_t[]){32, 32}), a = acc;
    acc.layout = layout_mma(fn, 2, 2);
    a.layout = layout_mma_a(fn, 2, 2);
    layout_map from = layout_must(fn, acc, 4), to = layout_must(fn, a, 4);
    ck_assert(!layout_same_threads(&from, &to, NULL) && !layout_same_warps(&from, &to));
    ck_assert(layout_same_warps(&to, &from)); /* who has whole rows has the columns too */
}
END_TEST

/* ---- maps compared, by brute force ---- */

static bool thread_holds(const layout_map *map, int64_t number, int lane, int warp, int *reg)
{
    for (*reg = 0; *reg < layout_registers(map); ++*reg) {
        if (layout_number(map, *reg, lane, warp) == number)
            return true;
    }
    return false;
}

static bool same_by_force(const layout_map *from, const layout_map *to)
{
    int reg;

    for (int t = 0; t < 32 * to->warps; t++)
        for (int r = 0; r < layout_registers(to); r++) {
            if (!thread_holds(from, layout_number(to, r, t % 32, t / 32), t % 32, t / 32, &reg))
                return false;
        }
    return layout_registers(from) == layout_registers(to);
}

static bool in_warp_by_force(const layout_map *from, const layout_map *to)
{
    static bool held[64 * 64];

    for (int w = 0; w < to->warps; w++) {
        memset(held, 0, sizeof held);
        for (int i = 0; i < 32 * layout_registers(from); i++)
            held[layout_number(from, i / 32, i % 32, w)] = true;
        for (int i = 0; i < 32 * layout_registers(to); i++) {
            if (!held[layout_number(to, i / 32, i % 32, w)])
                return false;
        }
    }
    return true;
}

START_TEST(maps_are_compared_as_threads_see_them)
{
    const ir_type small = type_tile(DT_F32, 2, (int32_t[]){64, 64});
    int order[] = {1, 0}, compared = 0, equal = 0;
    uint16_t lays[] = {
        layout_mma(fn, 4, 1),
        layout_mma(fn, 2, 2),
        layout_mma_a(fn, 4, 1),
        layout_mma_a(fn, 2, 2),
        layout_blocked(fn, 2, (int32_t[]){1, 8}, (int32_t[]){4, 8}, (int32_t[]){4, 1}, order),
        layout_blocked(fn, 2, (int32_t[]){1, 2}, (int32_t[]){4, 8}, (int32_t[]){4, 1}, order),
        layout_blocked(fn, 2, (int32_t[]){1, 2}, (int32_t[]){1, 32}, (int32_t[]){4, 1}, order),
        layout_trans(fn, layout_mma(fn, 4, 1), 2, order)};

    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            ir_type x = small, y = small;
            int reg_of[256], reg;
            x.layout = lays[i];
            y.layout = lays[j];
            layout_map from = layout_must(fn, x, 4), to = layout_must(fn, y, 4);
            bool same = layout_same_threads(&from, &to, reg_of);
            ck_assert_int_eq(same, same_by_force(&from, &to));
            ck_assert_int_eq(layout_same_warps(&from, &to), in_warp_by_force(&from, &to));
            for (int r = 0; same && r < layout_registers(&to); r++) {
                ck_assert(thread_holds(&from, layout_number(&to, r, 9, 2), 9, 2, &reg));
                ck_assert_int_eq(reg, reg_of[r]);
            }
            compared++;
            equal += same;
        }
    ck_assert_int_gt(equal, 8);
    ck_assert_int_lt(equal, compared);
}
END_TEST

START_TEST(a_slice_is_its_parent_without_a_dimension)
{
    ir_type tile = type_tile(DT_F32, 2, (int32_t[]){64, 96});

    for (int dim = 0; dim < 2; dim++) {
        tile.layout = layout_mma(fn, 2, 2);
        layout_map dropped = layout_must(fn, tile, 8);
        ir_type part = type_tile(DT_F32, 1, &tile.shape[1 - dim]);
        part.layout = layout_slice(fn, tile.layout, dim);
        layout_map slice = layout_must(fn, part, 8);
        layout_map_drop(&dropped, dim);
        ck_assert(layout_same_threads(&dropped, &slice, NULL));
        ck_assert(same_by_force(&dropped, &slice));
    }
}
END_TEST

START_TEST(trans_composes_and_cancels)
{
    const int swap[] = {1, 0}, turn[] = {1, 2, 0};
    uint16_t acc = layout_mma(fn, 4, 1), t = layout_trans(fn, acc, 2, swap);
    uint16_t sw = layout_shared(fn, 128);

    ck_assert_uint_ne(t, acc);
    ck_assert_uint_eq(layout_trans(fn, t, 2, swap), acc);
    ck_assert_uint_eq(layout_trans_of(fn, t, 2, swap), acc);
    ck_assert_uint_eq(layout_trans_of(fn, acc, 2, swap), t);
    uint16_t once = layout_trans(fn, sw, 3, turn), twice = layout_trans(fn, once, 3, turn);
    ck_assert_uint_ne(once, twice);
    ck_assert_uint_eq(layout_trans(fn, twice, 3, turn), sw);
    ck_assert(layout_is_shared(fn, once) && !layout_is_shared(fn, t));
}
END_TEST

/* ---- what does not fit ---- */

static void refused(ir_type tile, uint16_t layout, int warps, const char *text)
{
    layout_map map;
    const char *why = NULL;

    tile.layout = layout;
    ck_assert(!layout_map_of(fn, tile, warps, &map, &why));
    ck_assert_msg(strstr(why, text) != NULL, "%s", why);
}

START_TEST(misfits_are_told)
{
    ir_type tile = type_tile(DT_F32, 2, (int32_t[]){64, 60});
    uint16_t acc = layout_mma(fn, 4, 1);

    refused(tile, acc, 4, "multiples");
    tile.shape[1] = 64;
    refused(tile, acc, 2, "warps");
    refused(tile, acc, 6, "warps");
    refused(tile, layout_slice(fn, acc, 1), 4, "dimensions");
    refused(tile, layout_shared(fn, 0), 4, "shared memory");
    refused(tile, 0, 4, "has a layout");
    refused(type_tile(DT_F32, 1, tile.shape), acc, 4, "dimensions");
}
END_TEST

START_TEST(unsound_numbers_are_told)
{
    const char *why;
    uint16_t acc = layout_mma(fn, 4, 1);
    ir_layout good = *fn->layouts.at[layout_blocked(fn, 1, (int32_t[]){1}, (int32_t[]){32},
                                                    (int32_t[]){4}, (int[]){0})];
    ir_layout lay = good;

    ck_assert(layout_is_sound(fn, &lay, &why));
    lay.lanes[0] = 24;
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = good;
    lay.warps[0] = 64;
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = good;
    lay.regs[0] = 0;
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = good;
    lay.order[0] = 1;
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = (ir_layout){.kind = LAYOUT_SHARED, .row = 48};
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = (ir_layout){.kind = LAYOUT_SLICE, .rank = 1, .parent = acc, .dim = 2};
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = (ir_layout){.kind = LAYOUT_LANES, .rank = 2, .parent = acc, .dim = 2};
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = (ir_layout){.kind = LAYOUT_LANES, .rank = 1, .parent = acc, .dim = 1};
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay = (ir_layout){.kind = LAYOUT_TRANS, .rank = 2, .parent = acc, .perm = {0, 0}};
    ck_assert(!layout_is_sound(fn, &lay, &why));
    lay.parent = (uint16_t)fn->layouts.n;
    ck_assert(!layout_is_sound(fn, &lay, &why));
}
END_TEST

START_TEST(equal_layouts_are_one_with_a_unique_name)
{
    uint16_t x = layout_mma(fn, 1, 8), y = layout_mma(fn, 8, 4);

    ck_assert_uint_eq(layout_mma(fn, 1, 8), x);
    ck_assert_uint_ne(x, y);
    ck_assert_str_ne(fn->layouts.at[x]->name, fn->layouts.at[y]->name);
}
END_TEST

START_TEST(layouts_print)
{
    int32_t four = 4, eight = 8;
    uint16_t acc =
        layout_add(fn, (ir_layout){.name = "acc", .kind = LAYOUT_MMA, .rank = 2, .warps = {16, 2}});
    uint16_t all[] = {acc, layout_slice(fn, acc, 1), layout_trans(fn, acc, 2, (int[]){1, 0}),
                      layout_lanes(fn, acc, 1),
                      layout_blocked(fn, 1, &four, &eight, &four, (int[]){0}),
                      layout_shared(fn, 64)};
    const char *text[] = {
        "#acc = mma(warps=[16, 2])", " = slice(#acc, dim=1)", " = trans(#acc, perm=[1, 0])",
        " = lanes(#acc, dim=1)",
        " = blocked(regs=[4], lanes=[8], warps=[4], order=[0])", " = shared(row=64)"};

    for (int i = 0; i < 5; i++) {
        strbuf b;
        sb_init(&b, &ir_arena);
        layout_print(&b, fn, all[i]);
        ck_assert_msg(strstr(b.s, text[i]) != NULL, "%s", b.s);
    }
}
END_TEST

/* ---- shared memory ---- */

static const int rows_of_bytes[] = {128, 64, 32, 16, 0};

static ir_type buffer_of(enum dtype t, int row, int32_t r, int32_t c)
{
    return (ir_type){.kind = TYPE_BUFFER,
                     .dtype = (uint8_t)t,
                     .rank = 3,
                     .layout = layout_shared(fn, row),
                     .shape = {2, r, c}};
}

START_TEST(a_slot_has_a_place_for_each_element)
{
    static bool taken[1 << 16];
    static const enum dtype types[] = {DT_I8, DT_BF16, DT_F32, DT_F64};
    const char *why;

    for (int t = 0; t < 4; t++) {
        int e = dtype_bytes(types[t]);
        ir_type b = buffer_of(types[t], rows_of_bytes[_i], 24, 256 / e);
        ck_assert(layout_fits_buffer(fn, b, &why));
        ck_assert_int_eq(layout_slot_bytes(fn, b), 24 * 256);
        memset(taken, 0, sizeof taken);
        for (int32_t i = 0; i < 24 * 256 / e; i++) {
            int64_t at = layout_shared_offset(fn, b, (int32_t[]){i / (256 / e), i % (256 / e)});
            if (at % e || at < 0 || at >= 24 * 256 || taken[at])
                ck_abort_msg("element %d is at %d", i, (int)at);
            taken[at] = true;
        }
    }
}
END_TEST

/* The swizzle as TMA does it: bits of the address within a panel. */
static int64_t swizzled(int64_t address, int row)
{
    int64_t mask = row == 128 ? 7 : row == 64 ? 3 : row == 32 ? 1 : 0;

    return address ^ ((address >> 7 & mask) << 4);
}

START_TEST(offsets_are_the_swizzle_of_addresses)
{
    int row = rows_of_bytes[_i];
    ir_type b = buffer_of(DT_BF16, row, 40, 192);

    for (int32_t i = 0; i < 40 * 192; i++) {
        int32_t index[] = {i / 192, i % 192};
        int64_t byte = index[1] * 2, want = index[0] * 384 + byte;
        if (row) {
            int64_t panel = byte / row * 40 * row;
            want = panel + swizzled(index[0] * row + byte % row, row);
        }
        if (layout_shared_offset(fn, b, index) != want)
            ck_abort_msg("element %d, %d is not at %d", index[0], index[1], (int)want);
    }
}
END_TEST

/* How often the most used of the 32 banks is visited by n pieces of 16 bytes: 8 lanes at a time. */
static int conflicts(const int64_t at[8])
{
    int visits[8] = {0}, most = 0;

    for (int i = 0; i < 8; i++) {
        int bank = (int)(at[i] / 16 % 8);
        if (++visits[bank] > most)
            most = visits[bank];
    }
    return most;
}

START_TEST(matrices_and_rows_meet_no_bank_twice)
{
    int row = rows_of_bytes[_i];
    int32_t width = row / 2;
    ir_type b = buffer_of(DT_BF16, row, 64, width);
    int64_t at[8];

    for (int32_t r = 0; r < 64; r += 8)
        for (int32_t c = 0; c < width; c += 8) { /* ldmatrix: 8 rows of 16 bytes, one column */
            for (int i = 0; i < 8; i++)
                at[i] = layout_shared_offset(fn, b, (int32_t[]){r + i, c});
            ck_assert_int_eq(conflicts(at), 1);
        }
    for (int32_t piece = 0; piece < 64 * width / 8;
         piece += 8) { /* cp.async: one after the other */
        for (int32_t i = 0; i < 8; i++) {
            int32_t e = (piece + i) * 8;
            at[i] = layout_shared_offset(fn, b, (int32_t[]){e / width, e % width});
        }
        ck_assert_int_eq(conflicts(at), 1);
    }
}
END_TEST

START_TEST(without_a_swizzle_a_column_is_in_one_bank)
{
    ir_type b = buffer_of(DT_BF16, 0, 64, 64);
    int64_t at[8];

    for (int i = 0; i < 8; i++)
        at[i] = layout_shared_offset(fn, b, (int32_t[]){i, 0});
    ck_assert_int_eq(conflicts(at), 8);
}
END_TEST

START_TEST(a_view_is_the_same_bytes)
{
    ir_type b = buffer_of(DT_F16, 64, 24, 96), t = b;
    const char *why;

    t.layout = layout_trans(fn, b.layout, 2, (int[]){1, 0});
    t.shape[1] = 96;
    t.shape[2] = 24;
    ck_assert(layout_fits_buffer(fn, t, &why));
    for (int32_t i = 0; i < 24 * 96; i++)
        if (layout_shared_offset(fn, b, (int32_t[]){i / 96, i % 96}) !=
            layout_shared_offset(fn, t, (int32_t[]){i % 96, i / 96}))
            ck_abort_msg("element %d has two places", i);
    ck_assert(!layout_fits_buffer(fn, buffer_of(DT_F16, 128, 8, 96), &why));
    b.layout = layout_mma(fn, 4, 1);
    ck_assert(!layout_fits_buffer(fn, b, &why));
}
END_TEST

START_TEST(rows_are_as_wide_as_they_can_be)
{
    ck_assert_int_eq(layout_shared_row(256), 128);
    ck_assert_int_eq(layout_shared_row(192), 64);
    ck_assert_int_eq(layout_shared_row(160), 32);
    ck_assert_int_eq(layout_shared_row(48), 16);
    ck_assert_int_eq(layout_shared_row(24), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("layout");
    TCase *tc = tcase_create("layout");

    tcase_add_checked_fixture(tc, setup, ir_fixture_teardown);
    tcase_add_test(tc, every_element_is_held_and_first_copies_hold_it_once);
    tcase_add_test(tc, a_thread_holds_no_element_twice);
    tcase_add_test(tc, splits_count_lanes_and_warps);
    tcase_add_test(tc, mma_is_the_accumulator_of_m16n8);
    tcase_add_test(tc, lanes_of_mma_are_four_a_row);
    tcase_add_test(tc, mma_a_is_the_left_factor_of_m16n8k16);
    tcase_add_test(tc, an_accumulator_is_a_left_factor_when_columns_are_not_split);
    tcase_add_test(tc, maps_are_compared_as_threads_see_them);
    tcase_add_test(tc, a_slice_is_its_parent_without_a_dimension);
    tcase_add_test(tc, trans_composes_and_cancels);
    tcase_add_test(tc, misfits_are_told);
    tcase_add_test(tc, unsound_numbers_are_told);
    tcase_add_test(tc, equal_layouts_are_one_with_a_unique_name);
    tcase_add_test(tc, layouts_print);
    tcase_add_loop_test(tc, a_slot_has_a_place_for_each_element, 0, 5);
    tcase_add_loop_test(tc, offsets_are_the_swizzle_of_addresses, 0, 5);
    tcase_add_loop_test(tc, matrices_and_rows_meet_no_bank_twice, 0, 4);
    tcase_add_test(tc, without_a_swizzle_a_column_is_in_one_bank);
    tcase_add_test(tc, a_view_is_the_same_bytes);
    tcase_add_test(tc, rows_are_as_wide_as_they_can_be);
    suite_add_tcase(s, tc);
    return s;
}
