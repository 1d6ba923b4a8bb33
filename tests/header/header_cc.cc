#include "tilewright_ir.h"

int header_compiles(void);
int header_compiles(void)
{
    tw_config config = TW_CONFIG_INIT;
    tw_device_info device = TW_DEVICE_INFO_INIT;
    tw_param_info param = TW_PARAM_INFO_INIT;
    tw_launch_options launch = TW_LAUNCH_OPTIONS_INIT;
    tw_answer answer = TW_ANSWER_INIT;
    tw_tune_options tune = TW_TUNE_OPTIONS_INIT;
    tw_compile_options compile = TW_COMPILE_OPTIONS_INIT;
    tw_ir_kernel kernel = TW_IR_KERNEL_INIT;
    tw_arg args[] = {TW_TENSOR("a", static_cast<const DLTensor *>(nullptr)), TW_INT("b", 1), TW_F32("c", 0.5),
                     TW_BOOL("d", true), TW_TEXT("e", "f32")};

    return (config.size + device.size + param.size + launch.size + answer.size + tune.size +
            compile.size + kernel.size) != 0 &&
           args[0].kind == TW_ARG_TENSOR;
}
