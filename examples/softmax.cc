// From C++: objects that free themselves, errors as exceptions. About 40 lines make the wrapper.
#include "tilewright.h"
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

static void check(tw_status st)
{
    if (st != TW_OK)
        throw std::runtime_error(tw_last_error()->text);
}

template <typename T, void (*destroy)(T *)> struct Destroy {
    void operator()(T *object) const { destroy(object); }
};
using Context = std::unique_ptr<tw_context, Destroy<tw_context, tw_context_destroy>>;
using Device = std::unique_ptr<tw_device, Destroy<tw_device, tw_device_close>>;
using Kernel = std::unique_ptr<tw_kernel, Destroy<tw_kernel, tw_kernel_destroy>>;

static Context make_context()
{
    tw_context *cx = nullptr;
    check(tw_context_create(nullptr, &cx));
    return Context(cx);
}

static Device open_device(const Context &cx, const char *name)
{
    tw_device *device = nullptr;
    check(tw_device_open(cx.get(), name, &device));
    return Device(device);
}

static Kernel load_kernel(const Context &cx, const char *path)
{
    tw_kernel *kernel = nullptr;
    check(tw_kernel_load(cx.get(), path, nullptr, &kernel));
    return Kernel(kernel);
}

// A dense f32 matrix that owns its elements.
class Matrix
{
  public:
    Matrix(int64_t rows, int64_t columns) : shape{rows, columns}, at(size_t(rows * columns)) {}
    float &operator()(int64_t i, int64_t j) { return at[size_t(i * shape[1] + j)]; }
    DLTensor view() { return {at.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0}; }

  private:
    int64_t shape[2];
    std::vector<float> at;
};

int main()
try {
    Context cx = make_context(); // declared first, destroyed last
    Device device = open_device(cx, "cpu");
    Kernel softmax = load_kernel(cx, "kernels/softmax.tw");
    Matrix x(100, 1000), y(100, 1000);
    DLTensor tx = x.view(), ty = y.view();
    const tw_arg args[] = {TW_TENSOR("x", &tx), TW_TENSOR("y", &ty)};

    x(7, 3) = 1.0f;
    check(tw_launch(softmax.get(), device.get(), nullptr, args, 2));
    std::printf("softmax of a row with one 1 among 999 zeros: %.6f there, %.6f elsewhere\n",
                double(y(7, 3)), double(y(7, 4)));
    return std::fabs(y(7, 3) - std::exp(1.0f) / (std::exp(1.0f) + 999.0f)) < 1e-6f ? 0 : 1;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
