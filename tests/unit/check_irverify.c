/* Each invariant of docs/IR.md broken once. What text can express is broken in text, the rest by
 * damaging IR that was right. */
#include "tests/support/ir_fixture.h"
#include <check.h>
#include <string.h>

typedef struct wrong_text {
    enum diag_id id;
    const char *text, *says; /* says: part of the message, or NULL */
} wrong_text;

/* Statements for ir_wrap. */
static const wrong_text statements[] = {
    {DIAG_IR_NAME, "%a = neg %b : f32", "'%b' is not defined before this"},
    {DIAG_IR_NAME, "%a = neg %a : f32", "not defined before"},
    {DIAG_IR_NAME, "%s = neg %s : f32", "'%s' is defined already"},
    {DIAG_IR_NAME,
     "%c = const.i 1 : i1\nif %c {\n%q = neg %s : f32\nyield } else {\n%r = neg %q : f32\n"
     "yield }",
     "its block has ended"},
    {DIAG_IR_OP, "%a = add %s, %n : f32", "operands have one type; operands: f32, i32"},
    {DIAG_IR_OP, "%a = add %s : f32", "number of operands"},
    {DIAG_IR_OP, "%a = add %s, %s : f64", "'add' gives f32 here, not f64"},
    {DIAG_IR_OP, "%a, %b = add %s, %s : f32", "1 results, but 2 are named"},
    {DIAG_IR_OP, "add %s, %s : f32", "1 results, but 0 are named"},
    {DIAG_IR_OP, "%a = not %s : f32", "integer type or i1"},
    {DIAG_IR_OP, "%a = exp %n : i32", "float type"},
    {DIAG_IR_OP, "%a = shl %s, %s : f32", "an integer type"},
    {DIAG_IR_OP, "%a = neg %x : view<f32, 1>", "scalars or tiles"},
    {DIAG_IR_OP, "%a = const.i 256 : u8", "does not fit"},
    {DIAG_IR_OP, "%a = const.i 1 : f32", "integer type or i1"},
    {DIAG_IR_OP, "%a = const.i 1 : i32[4]", NULL},
    {DIAG_IR_OP, "%a = const.f 1.0 : i32", "float type"},
    {DIAG_IR_OP, "%a = program_id 3 : i32", "axes 0, 1 and 2"},
    {DIAG_IR_OP, "%a = program_id 0 : i64", "gives i32 here"},
    {DIAG_IR_OP, "%a = arange 0 : i64[4]", "i32[n]"},
    {DIAG_IR_OP, "%a = arange 2147483647 : i32[2]", "fit i32"},
    {DIAG_IR_OP, "%a = splat %s : f32", "gives a tile"},
    {DIAG_IR_OP, "%a = splat %s : f32[4]\n%b = splat %a : f32[4]", "takes a scalar"},
    {DIAG_IR_OP, "%a = expand_dims %s axis=0 : f32[1]", "takes a tile"},
    {DIAG_IR_OP, "%a = arange 0 : i32[4]\n%b = expand_dims %a axis=2 : i32[4, 1]", "axis lies"},
    {DIAG_IR_OP, "%a = arange 0 : i32[4]\n%b = broadcast %a : i32[8]", "extents of 1"},
    {DIAG_IR_OP, "%a = arange 0 : i32[4]\n%b = broadcast %a : i32[4, 4]", "same rank"},
    {DIAG_IR_OP, "%a = splat %s : f32[4, 8]\n%b = trans %a perm=[0, 0] : f32[4, 4]", "permutation"},
    {DIAG_IR_OP, "%a = splat %s : f32[4, 8]\n%b = trans %a perm=[1, 2] : f32[8, 4]", "permutation"},
    {DIAG_IR_OP, "%a = splat %s : f32[4, 8]\n%b = trans %a perm=[0] : f32[4]", "one entry of perm"},
    {DIAG_IR_OP, "%a = arange 0 : i32[4]\n%b = reshape %a : i32[5]", "number of elements"},
    {DIAG_IR_OP, "%a = cast %s : i32[4]", "keeps its shape"},
    {DIAG_IR_OP, "%a = bitcast %s : f16", "number of bits"},
    {DIAG_IR_OP, "%a = load %y, %n extent=[4] inside=0 : f32[4]", "an 'out' tensor is not read"},
    {DIAG_IR_OP, "%a = load %y, %n extent=[0] inside=0 : f32", "an 'out' tensor is not read"},
    {DIAG_IR_OP, "store %x, %n, %s extent=[0] inside=0", "an 'in' tensor is not written"},
    {DIAG_IR_OP, "%a = atomic_add %x, %n, %s extent=[0] inside=0 : f32", "'in' tensor is not"},
    {DIAG_IR_OP, "%a = atomic_add %y, %n, %s extent=[0] inside=0 : f32", "'out' tensor is not"},
    {DIAG_IR_OP, "%a = lt %s, %s : f32", "gives i1 here"},
    {DIAG_IR_OP, "%a = where %s, %s, %s : f32", "the condition is i1"},
    {DIAG_IR_OP, "%a = splat %s : f32[4]\n%c = const.i 1 : i1\n%b = where %c, %a, %a : f32[4]",
     "shape of the other operands"},
    {DIAG_IR_OP, "%a = splat %s : f32[4]\n%b = dot %a, %a, %a : f32[4]", "rank 2"},
    {DIAG_IR_OP, "%a = splat %s : f32[4, 8]\n%b = dot %a, %a, %a : f32[4, 8]", "inner extents"},
    {DIAG_IR_OP,
     "%a = splat %s : f32[4, 4]\n%c = splat %n : i32[4, 4]\n"
     "%b = dot %a, %a, %c : i32[4, 4]",
     "accumulator is f32"},
    {DIAG_IR_OP,
     "%a = splat %s : f32[4, 4]\n%c = splat %s : f32[4, 8]\n"
     "%b = dot %a, %a, %c : f32[4, 8]",
     "rows of the first"},
    {DIAG_IR_OP,
     "%a = splat %s : f32[4, 4]\n%c = splat %n : i32[4, 4]\n"
     "%b = dot %a, %c, %a : f32[4, 4]",
     "factors of dot"},
    {DIAG_IR_OP, "%a = reduce_max %s axis=0 : f32", "a tile of numbers"},
    {DIAG_IR_OP, "%a = splat %s : f32[4]\n%b = reduce_sum %a axis=1 : f32", "axis is one"},
    {DIAG_IR_OP, "%a = load %s, %n extent=[4] inside=0 : f32[4]", "first operand is a view"},
    {DIAG_IR_OP, "%a = load %x, %n, %n extent=[4] inside=0 : f32[4]", "one index and one extent"},
    {DIAG_IR_OP, "%a = load %x, %n extent=[4, 4] inside=0 : f32[4]", "one index and one extent"},
    {DIAG_IR_OP, "%a = load %x, %s extent=[4] inside=0 : f32[4]", "indices are i32"},
    {DIAG_IR_OP, "%a = load %x, %n extent=[-1] inside=0 : f32[4]", "extents are 0 or"},
    {DIAG_IR_OP, "%a = load %x, %n extent=[4] inside=2 : f32[4]", "inside has one bit"},
    {DIAG_IR_OP, "store %y, %n, %s extent=[4] inside=0", "type of the slice"},
    {DIAG_IR_OP, "for %i = %n to %n step %s {\nyield }", "bounds and the step"},
    {DIAG_IR_OP, "for %i = %n to %n step %n iter (%v = %x : view<f32, 1>) {\nyield %v }",
     "carried values are scalars or tiles"},
    {DIAG_IR_OP, "for %i = %n to %n step %n iter (%v = %s : f64) {\nyield %v }",
     "type of its start"},
    {DIAG_IR_OP, "if %n {\nyield } else {\nyield }", "an i1 scalar"},
    {DIAG_IR_OP, "assert %n \"n\"", "an i1 scalar"},
    {DIAG_IR_REGION, "%r = for %i = %n to %n step %n iter (%v = %s : f32) {\nyield }",
     "one value of its type for each result"},
    {DIAG_IR_REGION, "%r = for %i = %n to %n step %n iter (%v = %s : f32) {\nyield %i }",
     "one value of its type for each result"},
    {DIAG_IR_REGION, "%c = const.i 1 : i1\n%r = if %c : f32 {\nyield %s } else {\nyield }",
     "one value of its type for each result"},
    {DIAG_IR_REGION,
     "%c = const.i 1 : i1\n%r = if %c : view<f32, 1> {\nyield %x } else {\nyield %x }", NULL},
    {DIAG_IR_REGION,
     "%c = const.i 1 : i1\nwhile iter (%v = %s : f32) {\ncondition %c, %v } do {\nyield }",
     "take the carried values"},
    {DIAG_IR_REGION,
     "%c = const.i 1 : i1\nwhile iter (%v = %s : f32) {\ncondition %c, %v } do (%w : i32) "
     "{\nyield %w }",
     "take the carried values"},
    {DIAG_IR_TERMINATOR, "return\nassert %s \"\"", "nothing follows a terminator"},
    {DIAG_IR_TERMINATOR, "for %i = %n to %n step %n {\n}", "a block is not empty"},
    {DIAG_IR_TERMINATOR, "for %i = %n to %n step %n {\n%a = neg %s : f32 }", "one terminator"},
    {DIAG_IR_TERMINATOR, "for %i = %n to %n step %n {\nreturn }", "ends with yield"},
    {DIAG_IR_TERMINATOR, "%c = const.i 1 : i1\nwhile {\nyield } do {\nyield }",
     "ends with condition"},
    {DIAG_IR_TERMINATOR, "yield }\nlaunch () {", "ends with return"},
    {DIAG_IR_SIGNATURE, "return %s }\nlaunch () {", "a kernel returns nothing"},
};

/* The module of ir_try. */
static const wrong_text modules[] = {
    {DIAG_IR_SYNTAX, "", "'kernel' is expected here"},
    {DIAG_IR_SYNTAX, "level 3 kernel @f() { return }", "from 1 to 2"},
    {DIAG_IR_SYNTAX, "kernel f() { return }", "the kernel's name"},
    {DIAG_IR_SYNTAX, "kernel @f() { return } x", "the end of the text"},
    {DIAG_IR_SYNTAX, "kernel @f() { addd }", "did you mean 'add'?"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = const.i 99999999999999999999 : i32 return }", "64 bits"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = const.f 1e : f32 return }", "exponent"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = const.i 1x : i32 return }", "followed by a letter"},
    {DIAG_IR_SYNTAX, "kernel @f() { assert %a \"x }", "ends on its line"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = const.i 1 : i1 assert %a \"\\q\" }",
     "an escape is one of"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = arange 0 : i32[4] #mma return }", "has no layouts"},
    {DIAG_IR_SYNTAX, "kernel @f() { #comment\nreturn }", "'#' and a space start a comment"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = arange 0 : buf<f32, [2, 4]> return }",
     "no type of this name"},
    {DIAG_IR_SYNTAX, "kernel @f() { $ }", "no meaning here"},
    {DIAG_IR_SYNTAX, "kernel @f() { % }", "a name is expected"},
    {DIAG_IR_SYNTAX, "kernel @f() { %a = arange 0 : i32[0] return }", "from 1 to"},
    {DIAG_LIMIT, "kernel @f() { %a = arange 0 : i32[1048576, 2] return }", "1048576 elements"},
    {DIAG_LIMIT, "kernel @f() { %a = arange 0 : i32[1, 1, 1, 1, 1] return }", "4 dimensions"},
    {DIAG_IR_NAME, "kernel @f(in %x : view<f32, 1>[N]) { return }", "no such dimension"},
    {DIAG_IR_NAME, "kernel @f() { return } launch (given %g : i1 = %q) { return }",
     "no such parameter"},
    {DIAG_IR_SIGNATURE, "kernel @f(in %x : f32) { return }", "a tensor parameter is a view"},
    {DIAG_IR_SIGNATURE, "kernel @f<N, N>() { return }", "two dimensions have one name"},
    {DIAG_IR_SIGNATURE, "kernel @f<N>(in %x : view<f32, 1>[N]) { return }",
     "has a hidden parameter"},
    {DIAG_IR_SIGNATURE, "kernel @f<8>(in %x : view<f32, 1>[8] align=12) { return }",
     "power of two"},
    {DIAG_IR_SIGNATURE, "kernel @f<N>(dim %n : i64 = N) { return }", "i32 value"},
    {DIAG_IR_SIGNATURE, "kernel @f<N = 3>(dim %n : i32 = N) { return }", "run-time dimension"},
    {DIAG_IR_SIGNATURE, "kernel @f<N>(dim %n : i32 = N, dim %m : i32 = N) { return }",
     "two hidden parameters"},
    {DIAG_IR_SIGNATURE, "kernel @f<N>(dim %n : i32 = N, %s : f32) { return }", "in the order"},
    {DIAG_IR_SIGNATURE, "kernel @f(%0 : f32) { return }", "no proper name"},
    {DIAG_IR_NAME, "kernel @f(%s : f32, %s : f32) { return }", "defined already"},
    {DIAG_IR_SIGNATURE, "kernel @f(%s : f32) { return } launch (given %g : i32 = %s) { return }",
     "a given parameter is i1"},
    {DIAG_IR_SIGNATURE, "kernel @f() { return } launch () { return }", "returns the grid"},
    {DIAG_IR_SIGNATURE,
     "kernel @f(%s : f32) { return }\nlaunch () {\n%g = const.i 1 : i64\n"
     "return %g, %g, %g }",
     "returns the grid"},
    {DIAG_IR_HOST, "kernel @f() { return }\nlaunch () {\n%a = arange 0 : i32[4]\nreturn }",
     "only ops that the host runs"},
    {DIAG_IR_HOST,
     "kernel @f<8>(in %x : view<f32, 1>[8]) { return }\nlaunch () {\n"
     "%a = neg %x : f32\nreturn }",
     NULL},
};

static void check_wrong(const wrong_text *w, const char *text)
{
    ck_assert_msg(ir_try(text) == NULL, "accepted: %s", text);
    ck_assert_uint_ge(ir_diags.all.n, 1);
    const diag *d = ir_diags.all.at[0];
    ck_assert_ptr_nonnull(d->where.src || d->id == DIAG_IR_SIGNATURE ? d : NULL);
    enum diag_id id = d->id;
    const char *said = ir_messages();
    ck_assert_msg(!w->says || strstr(said, w->says), "wanted '%s' for %s:\n%s", w->says, text,
                  said);
    /* A view where a number is wanted is refused by its type before the host rule. */
    ck_assert_msg(id == w->id || !w->says, "wanted %s:\n%s", diag_name(w->id), said);
}

START_TEST(wrong_statements)
{
    const wrong_text *w = &statements[_i];

    check_wrong(w, ir_wrap(w->text));
}
END_TEST

START_TEST(wrong_modules)
{
    check_wrong(&modules[_i], modules[_i].text);
}
END_TEST

START_TEST(a_message_shows_the_place)
{
    ck_assert_ptr_null(
        ir_try("kernel @f() {\n    %a = const.i 1 : i32\n    %b = neg %c : i32\n}\n"));
    ck_assert_str_eq(ir_messages(),
                     "test.tir:3:14: error: '%c' is not defined before this [ir-name]\n"
                     "    3 |     %b = neg %c : i32\n"
                     "      |              ^~\n");
}
END_TEST

static ir_module *nested(int depth)
{
    strbuf text;

    sb_init(&text, &ir_arena);
    sb_str(&text, "%c = const.i 1 : i1\n");
    for (int i = 0; i < depth; i++)
        sb_str(&text, "if %c {\n");
    for (int i = 0; i < depth; i++)
        sb_str(&text, "yield } else { yield }\n");
    return ir_try(ir_wrap(text.s));
}

START_TEST(nesting_has_a_limit)
{
    ck_assert_ptr_nonnull(nested(63));
    ck_assert_ptr_null(nested(64));
    ck_assert_int_eq(ir_diags.all.at[0]->id, DIAG_LIMIT);
    ck_assert_ptr_null(nested(20000));
}
END_TEST

START_TEST(lists_have_a_limit)
{
    strbuf text;

    sb_init(&text, &ir_arena);
    sb_str(&text, "return %s");
    for (int i = 0; i < 5000; i++)
        sb_str(&text, ", %s");
    ck_assert_ptr_null(ir_try(ir_wrap(text.s)));
    ck_assert_int_eq(ir_diags.all.at[0]->id, DIAG_LIMIT);
}
END_TEST

START_TEST(texts_have_a_limit)
{
    strbuf text;

    sb_init(&text, &ir_arena);
    sb_pad(&text, ' ', SOURCE_MAX_BYTES + 1);
    ck_assert_ptr_null(ir_try(text.s));
    ck_assert_int_eq(ir_diags.all.at[0]->id, DIAG_LIMIT);
}
END_TEST

/* ---- damage that text cannot express ---- */

static ir_module *sound(void)
{
    return ir_must(ir_wrap("%c = const.i 8 : i32\n%z = neg %s : f32\n"
                           "%r = for %i = %c to %n step %c iter (%v = %z : f32) {\n"
                           "%w = add %v, %s : f32\nyield %w }\n"
                           "%t = load %x, %c extent=[8] inside=0 : f32[8]\n"
                           "%u = trans %t perm=[0] : f32[8]\n"));
}

START_TEST(a_use_before_the_definition)
{
    ir_module *m = sound();

    ir_move_before(ir_first_of(m, OP_NEG), m->kernel->body->last);
    ir_refused(m, DIAG_IR_SCOPE);
}
END_TEST

START_TEST(a_use_outside_of_the_region)
{
    ir_module *m = sound();

    ir_first_of(m, OP_TRANS)->args[0] = ir_first_of(m, OP_ADD)->res;
    ir_refused(m, DIAG_IR_SCOPE);
}
END_TEST

START_TEST(a_use_of_what_was_unlinked)
{
    ir_module *m = sound();

    ir_unlink(ir_first_of(m, OP_NEG));
    ir_refused(m, DIAG_IR_SCOPE);
}
END_TEST

START_TEST(operands_out_of_range)
{
    ir_module *m = sound();

    ir_first_of(m, OP_NEG)->args[0] = 9999;
    ir_refused(m, DIAG_IR_LINKS);
    ir_first_of(m, OP_NEG)->args[0] = 0;
    ir_refused(m, DIAG_IR_LINKS);
}
END_TEST

START_TEST(results_of_another_op)
{
    ir_module *m = sound();

    ir_first_of(m, OP_NEG)->res = ir_first_of(m, OP_ADD)->res;
    ir_refused(m, DIAG_IR_LINKS);
    ir_first_of(m, OP_NEG)->res = 9999;
    ir_refused(m, DIAG_IR_LINKS);
}
END_TEST

START_TEST(broken_links)
{
    ir_module *m = sound();
    ir_op *op = ir_first_of(m, OP_NEG);

    op->next->prev = op->next;
    ir_refused(m, DIAG_IR_LINKS);
    op->next->prev = op;
    op->parent = NULL;
    ir_refused(m, DIAG_IR_LINKS);
    op->parent = m->kernel->body;
    op->next = op->prev;
    ir_refused(m, DIAG_IR_LINKS);
}
END_TEST

START_TEST(a_region_of_another_op)
{
    ir_module *m = sound();

    ir_first_of(m, OP_FOR)->regions[0]->owner = ir_first_of(m, OP_NEG);
    ir_refused(m, DIAG_IR_LINKS);
}
END_TEST

START_TEST(a_row_of_the_table_is_broken)
{
    ir_module *m = sound();

    ir_first_of(m, OP_NEG)->nres = 0;
    ir_refused(m, DIAG_IR_LINKS);
    m = sound();
    ir_first_of(m, OP_NEG)->code = OP_COUNT;
    ir_refused(m, DIAG_IR_LINKS);
}
END_TEST

START_TEST(a_loop_loses_a_carried_value)
{
    ir_module *m = sound();

    ir_first_of(m, OP_FOR)->nargs--;
    ir_refused(m, DIAG_IR_REGION);
    m = sound();
    ir_first_of(m, OP_FOR)->regions[0]->nargs--;
    ir_refused(m, DIAG_IR_REGION);
    m = sound();
    ir_first_of(m, OP_FOR)->nres = 0;
    ir_refused(m, DIAG_IR_REGION);
}
END_TEST

START_TEST(types_change_under_an_op)
{
    ir_module *m = sound();

    m->kernel->values.at[ir_first_of(m, OP_NEG)->res].type = type_scalar(DT_F64);
    ir_refused(m, DIAG_IR_OP);
    m = sound();
    m->kernel->values.at[ir_first_of(m, OP_NEG)->res].type.layout = 1;
    ir_refused(m, DIAG_IR_OP);
    m = sound();
    m->kernel->values.at[ir_param_value(m->kernel, 2)].type = type_scalar(DT_F64);
    ir_refused(m, DIAG_IR_SIGNATURE);
}
END_TEST

START_TEST(attributes_change_under_an_op)
{
    ir_module *m = sound();

    ir_first_of(m, OP_TRANS)->attr[0].ints.n = 0;
    ir_refused(m, DIAG_IR_OP);
    m = sound();
    ir_first_of(m, OP_LOAD)->attr[1].i = 4;
    ir_refused(m, DIAG_IR_OP);
}
END_TEST

START_TEST(a_direction_changes_under_an_op)
{
    ir_module *m = sound();
    ir_val view = ir_first_of(m, OP_LOAD)->args[0];

    m->kernel->params.at[ir_value_of(m->kernel, view)->index].direction = DIR_OUT;
    ir_refused(m, DIAG_IR_OP);
}
END_TEST

START_TEST(a_constant_that_its_type_cannot_hold)
{
    ir_module *m = ir_must(ir_wrap("%h = const.f 0.1 : f32"));

    ir_first_of(m, OP_CONST_FLOAT)->attr[0].f = 0.1;
    ir_refused(m, DIAG_IR_OP);
}
END_TEST

START_TEST(a_launch_function_of_another_kernel)
{
    ir_module *m = ir_must("kernel @f(%s : f32) { return }\nlaunch () {\n"
                           "%g = const.i 1 : i64\nreturn %g, %g, %g, %s }");

    m->launch->params.at[0].name = "t";
    ir_refused(m, DIAG_IR_SIGNATURE);
    m->launch->params.at[0].name = m->kernel->params.at[0].name;
    ck_assert(ir_verify(m, &ir_diags));
    m->kernel->params.at[0].has_default = true;
    ir_refused(m, DIAG_IR_SIGNATURE);
}
END_TEST

START_TEST(a_module_without_a_kernel)
{
    ir_refused(ir_module_new(&ir_arena, &ir_names), DIAG_IR_LINKS);
}
END_TEST

#define COUNT(rows) ((int)(sizeof(rows) / sizeof *(rows)))

Suite *test_suite(void)
{
    Suite *s = suite_create("irverify");
    TCase *tc = tcase_create("irverify");

    tcase_add_checked_fixture(tc, ir_fixture_setup, ir_fixture_teardown);
    tcase_add_loop_test(tc, wrong_statements, 0, COUNT(statements));
    tcase_add_loop_test(tc, wrong_modules, 0, COUNT(modules));
    tcase_add_test(tc, a_message_shows_the_place);
    tcase_add_test(tc, nesting_has_a_limit);
    tcase_add_test(tc, lists_have_a_limit);
    tcase_add_test(tc, texts_have_a_limit);
    tcase_add_test(tc, a_use_before_the_definition);
    tcase_add_test(tc, a_use_outside_of_the_region);
    tcase_add_test(tc, a_use_of_what_was_unlinked);
    tcase_add_test(tc, operands_out_of_range);
    tcase_add_test(tc, results_of_another_op);
    tcase_add_test(tc, broken_links);
    tcase_add_test(tc, a_region_of_another_op);
    tcase_add_test(tc, a_row_of_the_table_is_broken);
    tcase_add_test(tc, a_loop_loses_a_carried_value);
    tcase_add_test(tc, types_change_under_an_op);
    tcase_add_test(tc, attributes_change_under_an_op);
    tcase_add_test(tc, a_direction_changes_under_an_op);
    tcase_add_test(tc, a_constant_that_its_type_cannot_hold);
    tcase_add_test(tc, a_launch_function_of_another_kernel);
    tcase_add_test(tc, a_module_without_a_kernel);
    suite_add_tcase(s, tc);
    return s;
}
