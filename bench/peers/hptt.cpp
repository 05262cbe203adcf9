/* hptt.cpp: HPTT as a peer: permutations of dense tensors of 4, 8 and 16 bytes an element. */
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include <hptt.h>

#include "peer.h"

namespace
{

struct plan {
    virtual void run() = 0;
    virtual ~plan() {}
};

template <typename T> struct plan_of : plan {
    std::shared_ptr<hptt::Transpose<T>> t;
    void run() override { t->execute(); }
};

/* Dims from the shortest stride to the longest; empty when they are not those of a dense tensor. */
std::vector<int> order_of(const peer_copy *c, const int64_t *st)
{
    std::vector<int> at(c->rank);
    std::iota(at.begin(), at.end(), 0);
    std::sort(at.begin(), at.end(), [st](int a, int b) { return st[a] < st[b]; });
    int64_t dense = 1;
    for (int i : at) {
        if (st[i] != dense)
            return {};
        dense *= c->n[i];
    }
    return at;
}

template <typename T> void *make(const peer_copy *c, const std::vector<int> &in, const std::vector<int> &out)
{
    std::vector<int> size, perm;
    for (int i : in)
        size.push_back(static_cast<int>(c->n[i]));
    for (int i : out)
        perm.push_back(static_cast<int>(std::find(in.begin(), in.end(), i) - in.begin()));
    auto p = std::unique_ptr<plan_of<T>>(new plan_of<T>);
    p->t = hptt::create_plan(perm.data(), c->rank, T(1), static_cast<const T *>(c->src), size.data(), nullptr,
                             T(0), static_cast<T *>(c->dst), nullptr,
                             c->measure ? hptt::MEASURE : hptt::ESTIMATE, c->threads);
    return p.release();
}

} // namespace

void *peer_new(const peer_copy *c)
{
    auto in = order_of(c, c->s), out = order_of(c, c->d);
    bool permutes = c->rank > 1 && !in.empty() && !out.empty();
    if (!permutes || *std::max_element(c->n, c->n + c->rank) > INT32_MAX)
        return nullptr;
    return c->width == 4    ? make<float>(c, in, out)
           : c->width == 8  ? make<double>(c, in, out)
           : c->width == 16 ? make<hptt::DoubleComplex>(c, in, out)
                            : nullptr;
}

void peer_run(void *p) { static_cast<plan *>(p)->run(); }

void peer_free(void *p) { delete static_cast<plan *>(p); }
