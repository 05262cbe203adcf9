// unique_ptr.cpp: the library from C++11 on. A deleter that knows the three frees is all the wrapping it takes.
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>
#include <xt/xt.h>

struct xt_free {
    void operator()(xt_ctx *p) const { xt_ctx_free(p); }
    void operator()(xt_graph *p) const { xt_graph_free(p); }
    void operator()(xt_kernel *p) const { xt_kernel_free(p); }
};
template <class T> using xt_ptr = std::unique_ptr<T, xt_free>;

static void check(xt_status s)
{
    if (s)
        throw std::runtime_error(xt_last_error()->message);
}

static xt_ptr<xt_kernel> compile(xt_ctx *ctx, const char *chain)
{
    xt_graph *g = nullptr;
    check(xt_parse(chain, 0, nullptr, &g));
    xt_ptr<xt_graph> graph(g);
    xt_kernel *k = nullptr;
    check(xt_compile(ctx, g, nullptr, &k));
    return xt_ptr<xt_kernel>(k);
}

int main()
{
    try {
        xt_ctx *c = nullptr;
        check(xt_ctx_new(nullptr, &c));
        xt_ptr<xt_ctx> ctx(c);
        xt_ptr<xt_kernel> k = compile(ctx.get(), "x: i32[2,3]; x.T");
        std::vector<std::int32_t> in = {1, 2, 3, 4, 5, 6}, out(in.size());
        const void *srcs[] = {in.data()};
        check(xt_run(k.get(), out.data(), srcs, nullptr));
        for (std::int32_t v : out)
            std::cout << v << ' ';
        compile(ctx.get(), "x: i32[2,3]; x.reshape(5,5)");
    } catch (const std::exception &e) {
        std::cout << "and then: " << e.what() << '\n';
    }
}
