#include "compiler/schedule/schedule.h"
#include "compiler/base/check.h"
#include "compiler/base/error.h"
#include "compiler/schedule/schedule_pass.h"

#define PASS(name, partial, help) tw_status pass_##name(pass_cx *cx, ir_module *m);
#define STEP(name)
#include "compiler/schedule/schedule.def"

static const pass_row rows[] = {
#define PASS(name, partial, help) {#name, pass_##name, partial},
#define STEP(name)
#include "compiler/schedule/schedule.def"
};

static const char *const steps[] = {
#define PASS(name, partial, help)
#define STEP(name) #name,
#include "compiler/schedule/schedule.def"
};

static const pass_table level_2 = {rows, sizeof rows / sizeof *rows, steps,
                                   sizeof steps / sizeof *steps};

const char *schedule_pass_name(size_t i)
{
    return i < level_2.rows ? rows[i].name : NULL;
}

schedule_params schedule_defaults(void)
{
    return (schedule_params){.num_warps = 4, .num_stages = 2, .lazy_rescale = 1, .stage_blocks = 1};
}

static bool is_power_of_two(int x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

static tw_status check(const schedule_params *p)
{
    if (!is_power_of_two(p->num_warps) || p->num_warps > 16)
        return error_set(TW_E_ARG, "num_warps is 1, 2, 4, 8 or 16, not %d", p->num_warps);
    if (p->num_stages < 1 || p->num_stages > 4)
        return error_set(TW_E_ARG, "num_stages is 1 to 4, not %d", p->num_stages);
    if (p->operand_registers < 0 || p->operand_registers > 2)
        return error_set(TW_E_ARG, "operand_registers is 0, 1 or 2, not %d", p->operand_registers);
    if (!is_power_of_two(p->stage_blocks) || p->stage_blocks > 4)
        return error_set(TW_E_ARG, "stage_blocks is 1, 2 or 4, not %d", p->stage_blocks);
    return TW_OK;
}

tw_status schedule_run_pass(ir_module *m, const char *pass, const gpu_limits *gpu,
                            const schedule_params *params, diag_list *diags,
                            const pipeline_options *options, schedule_result *result)
{
    schedule s = {.gpu = gpu, .params = *params, .result = {.warps = params->num_warps}};

    TRY(check(params));
    tw_status st = pipeline_run_table(&level_2, pass, &s, m, diags, options);
    if (result)
        *result = s.result;
    return st;
}

tw_status schedule_run(ir_module *m, const gpu_limits *gpu, const schedule_params *params,
                       diag_list *diags, const pipeline_options *options, schedule_result *result)
{
    return schedule_run_pass(m, NULL, gpu, params, diags, options, result);
}
