/* alu.c: arithmetic, comparison, selection and moves, one instruction for the 32 lanes of a warp.
 * In: slots of sources, all defined for the lanes that count. Out: destinations, written for those lanes
 * only. Every lane is computed, so no case may be undefined in C for any operand; division alone looks at the
 * lanes. */
#include "impl.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 signed_wide;

/* The value of the low 64 - sh bits as a signed number. */
static inline int64_t sx(uint64_t v, int sh) { return (int64_t)(v << sh) >> sh; }

static uint64_t multiply_high(uint64_t a, uint64_t b, int bits) { return (uint64_t)((wide)a * b >> bits); }

static uint64_t multiply_high_signed(int64_t a, int64_t b, int bits)
{
    return (uint64_t)((signed_wide)a * b >> bits);
}

static uint64_t shift_left(uint64_t a, uint64_t n, int bits) { return n >= (uint64_t)bits ? 0 : a << n; }
static uint64_t shift_right(uint64_t a, uint64_t n, int bits) { return n >= (uint64_t)bits ? 0 : a >> n; }

static uint64_t shift_right_signed(int64_t a, uint64_t n, int bits)
{
    return (uint64_t)(a >> (n >= (uint64_t)bits ? bits - 1 : (int)n));
}

/* shf: the 64 bits hi:lo shifted by 0..32, high word of the left shift, low word of the right one. */
static uint64_t funnel_left(uint64_t lo, uint64_t hi, uint64_t n) { return ((hi << 32 | lo) << n) >> 32; }
static uint64_t funnel_right(uint64_t lo, uint64_t hi, uint64_t n) { return (hi << 32 | lo) >> n; }
static uint64_t clamp_32(uint64_t n) { return n > 32 ? 32 : n; }

static uint64_t logic3(uint64_t a, uint64_t b, uint64_t c, int table)
{
    uint64_t d = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            d |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return d;
}

/* Selectors of the named prmt modes: rows are modes f4e.. rc16, columns the low two bits of c. */
static const uint16_t permute_modes[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
    {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};

static uint64_t permute(uint64_t a, uint64_t b, uint64_t c, int mode)
{
    uint64_t bytes = b << 32 | a, d = 0;
    uint32_t selector = mode ? permute_modes[mode - 1][c & 3] : (uint32_t)c;
    for (int i = 0; i < 4; i++) {
        uint32_t s = selector >> 4 * i & 15;
        uint64_t byte = bytes >> 8 * (s & 7) & 255;
        if (s & 8) /* replicate the sign over the byte */
            byte = byte & 128 ? 255 : 0;
        d |= byte << 8 * i;
    }
    return d;
}

/* bfe as the manual has it: bits past the end repeat the sign bit, which is that of the field's last existing
 * bit. */
static uint64_t extract(uint64_t a, uint64_t position, uint64_t length, int bits, int is_signed)
{
    uint64_t pos = position & 255, len = length & 255, d = 0;
    uint64_t last = pos + len - 1 < (uint64_t)bits - 1 ? pos + len - 1 : (uint64_t)bits - 1;
    uint64_t sign = !is_signed || len == 0 ? 0 : a >> last & 1;
    for (int i = 0; i < bits; i++)
        d |= ((uint64_t)i < len && pos + (uint64_t)i < (uint64_t)bits ? a >> (pos + (uint64_t)i) & 1 : sign)
             << i;
    return d;
}

static uint64_t insert(uint64_t a, uint64_t b, uint64_t position, uint64_t length, int bits)
{
    uint64_t pos = position & 255, len = length & 255;
    for (uint64_t i = 0; i < len && pos + i < (uint64_t)bits; i++) {
        uint64_t bit = (uint64_t)1 << (pos + i);
        b = (b & ~bit) | (a >> i & 1) << (pos + i);
    }
    return b;
}

/* dp4a: the bytes of a times those of b; dp2a: the halves of a times two bytes of b. sub: 1 a is signed, 2 b
 * is, 4 halves by the low bytes, 8 halves by the high ones. */
static uint64_t dot(uint64_t a, uint64_t b, int sub)
{
    int n = sub & 12 ? 2 : 4, width = 32 / n;
    uint64_t sum = 0;
    b >>= sub & 8 ? 16 : 0;
    for (int i = 0; i < n; i++) {
        uint64_t x = a >> width * i & ((1u << width) - 1), y = b >> 8 * i & 255;
        sum += (sub & 1 ? (uint64_t)sx(x, 64 - width) : x) * (sub & 2 ? (uint64_t)sx(y, 56) : y);
    }
    return sum;
}

static uint64_t reverse(uint64_t a, int bits)
{
    uint64_t d = 0;
    for (int i = 0; i < bits; i++)
        d |= (a >> i & 1) << (bits - 1 - i);
    return d;
}

static uint64_t leading_zeros(uint64_t a, int sh)
{
    return a ? (uint64_t)__builtin_clzll(a) - (uint64_t)sh : 64 - (uint64_t)sh;
}

/* Position of the highest bit that is not a copy of the sign; all ones when there is none. */
static uint64_t find_highest(uint64_t a) { return a ? 63 - (uint64_t)__builtin_clzll(a) : ~(uint64_t)0; }

static uint64_t divide(int64_t a, int64_t b) { return b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b); }
static uint64_t remainder_of(int64_t a, int64_t b) { return b == -1 ? 0 : (uint64_t)(a % b); }

static void alu_divide(struct machine *mc, const struct insn *in, uint32_t lanes, uint64_t *d,
                       const uint64_t *a, const uint64_t *b)
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        if (b[l] == 0)
            ptx_stop(mc, PTX_TRAPPED, l, "division by zero, whose result is unspecified");
        /* clang-format off */
        switch (in->op) {
        case OP_DIV_U: d[l] = a[l] / b[l]; break;
        case OP_REM_U: d[l] = a[l] % b[l]; break;
        case OP_DIV_S: d[l] = divide(sx(a[l], in->sh), sx(b[l], in->sh)) & in->mask; break;
        default:       d[l] = remainder_of(sx(a[l], in->sh), sx(b[l], in->sh)) & in->mask; break;
        }
        /* clang-format on */
    }
}

/* The low 64 - from_sh bits, extended as they are signed, cut to 64 - to_sh bits, extended as those are
 * signed. */
static uint64_t convert(uint64_t a, int from_sh, int from_signed, int to_sh, int to_signed)
{
    uint64_t v = from_signed ? (uint64_t)sx(a, from_sh) : a << from_sh >> from_sh;
    return to_signed ? (uint64_t)sx(v, to_sh) : v << to_sh >> to_sh;
}

static uint64_t holds(uint64_t a, uint64_t b, int compare, int is_signed, int sh)
{
    int less = is_signed ? sx(a, sh) < sx(b, sh) : a < b;
    /* clang-format off */
    switch (compare) {
    case CMP_EQ: return a == b;
    case CMP_NE: return a != b;
    case CMP_LT: return (uint64_t)less;
    case CMP_GE: return !less;
    case CMP_LE: return less || a == b;
    default:     return !less && a != b;
    }
    /* clang-format on */
}

static void alu_compare(const struct insn *in, uint64_t *d, uint64_t *d2, const uint64_t *a,
                        const uint64_t *b, const uint64_t *c)
{
    for (int l = 0; l < LANES; l++) {
        uint64_t yes = holds(a[l], b[l], in->sub, in->is_signed, in->sh), no = !yes;
        if (in->combine != COMBINE_NONE) {
            uint64_t other = c[l] ^ in->flip;
            yes = in->combine == COMBINE_AND  ? yes & other
                  : in->combine == COMBINE_OR ? yes | other
                                              : yes ^ other;
            no = in->combine == COMBINE_AND  ? no & other
                 : in->combine == COMBINE_OR ? no | other
                                             : no ^ other;
        }
        d[l] = yes;
        d2[l] = no;
    }
}

/* A sum with carry, a difference with borrow; the condition code holds whichever came last. */
static void alu_carry(const struct insn *in, uint64_t *d, uint64_t *d2, const uint64_t *a, const uint64_t *b,
                      const uint64_t *c)
{
    int subtract = in->op == OP_SUB_CC || in->op == OP_SUBC || in->op == OP_SUBC_CC;
    int carry_in = in->op != OP_ADD_CC && in->op != OP_SUB_CC;
    for (int l = 0; l < LANES; l++) {
        wide other = (wide)b[l] + (carry_in ? c[l] : 0);
        d[l] = (uint64_t)(subtract ? a[l] - other : a[l] + other) & in->mask;
        d2[l] = subtract ? a[l] < other : (a[l] + other) >> in->bits != 0;
    }
}

static void alu_window(struct machine *mc, const struct insn *in, uint32_t lanes, uint64_t *d,
                       const uint64_t *a)
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        uint64_t window = WINDOW(in->space);
        if ((a[l] & WINDOW_MASK) != (in->op == OP_CVTA ? 0 : window))
            ptx_stop(mc, PTX_OUT_OF_BOUNDS, l, "conversion of an address that is not of this space: 0x%llx",
                     (unsigned long long)a[l]);
        d[l] = in->op == OP_CVTA ? a[l] + window : a[l] - window;
    }
}

static void store_lanes(struct warp *w, int slot, const uint64_t *value, uint32_t lanes)
{
    if (slot == NO_SLOT)
        return;
    uint64_t *to = w->reg[slot];
    w->defined[slot] |= lanes;
    if (lanes == ~(uint32_t)0) {
        memcpy(to, value, LANES * sizeof *to);
        return;
    }
    for (int l = 0; l < LANES; l++)
        to[l] = lanes >> l & 1 ? value[l] : to[l];
}

static void alu_unpack(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t part[LANES], whole[LANES];
    memcpy(whole, slot_values(mc, w, in->src[0]), sizeof whole); /* a part may overwrite the source */
    for (int i = 0; i < in->n_dst; i++) {
        for (int l = 0; l < LANES; l++)
            part[l] = whole[l] >> in->sub * i & in->mask;
        store_lanes(w, in->dst[i], part, lanes);
    }
}

#define EACH(expression)                                                                                     \
    for (int l = 0; l < LANES; l++)                                                                          \
        d[l] = (uint64_t)(expression)&mask;                                                                  \
    break
#define A  a[l]
#define B  b[l]
#define C  c[l]
#define SA sx(a[l], sh)
#define SB sx(b[l], sh)
#define SC sx(c[l], sh)

void ptx_alu(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t d[LANES], d2[LANES];
    const uint64_t *a = slot_values(mc, w, in->src[0]);
    const uint64_t *b = in->n_src > 1 ? slot_values(mc, w, in->src[1]) : a;
    const uint64_t *c = in->n_src > 2 ? slot_values(mc, w, in->src[2]) : a;
    const uint64_t *e = in->n_src > 3 ? slot_values(mc, w, in->src[3]) : a;
    const uint64_t mask = in->mask;
    const int sh = in->sh, bits = in->bits, sub = in->sub;

    /* clang-format off */
    switch (in->op) {
    case OP_MOV: EACH(A);
    case OP_ADD: EACH(A + B);
    case OP_SUB: EACH(A - B);
    case OP_ADD_CC:
    case OP_ADDC:
    case OP_ADDC_CC:
    case OP_SUB_CC:
    case OP_SUBC:
    case OP_SUBC_CC: alu_carry(in, d, d2, a, b, c); break;
    case OP_MUL: EACH(A * B);
    case OP_MULHI_U: EACH(multiply_high(A, B, bits));
    case OP_MULHI_S: EACH(multiply_high_signed(SA, SB, bits));
    case OP_MULWIDE_S: EACH((uint64_t)SA * (uint64_t)SB);
    case OP_MAD: EACH(A * B + C);
    case OP_MADHI_U: EACH(multiply_high(A, B, bits) + C);
    case OP_MADHI_S: EACH(multiply_high_signed(SA, SB, bits) + C);
    case OP_MADWIDE_S: EACH((uint64_t)SA * (uint64_t)SB + C);
    case OP_DIV_U:
    case OP_DIV_S:
    case OP_REM_U:
    case OP_REM_S: alu_divide(mc, in, lanes, memset(d, 0, sizeof d), a, b); break;
    case OP_MIN_U: EACH(A < B ? A : B);
    case OP_MIN_S: EACH(SA < SB ? A : B);
    case OP_MAX_U: EACH(A > B ? A : B);
    case OP_MAX_S: EACH(SA > SB ? A : B);
    case OP_ABS: EACH(SA < 0 ? 0 - A : A);
    case OP_NEG: EACH(0 - A);
    case OP_AND: EACH(A & B);
    case OP_OR: EACH(A | B);
    case OP_XOR: EACH(A ^ B);
    case OP_NOT: EACH(~A);
    case OP_CNOT: EACH(A == 0);
    case OP_SHL: EACH(shift_left(A, B, bits));
    case OP_SHR_U: EACH(shift_right(A, B, bits));
    case OP_SHR_S: EACH(shift_right_signed(SA, B, bits));
    case OP_SHFL_WRAP: EACH(funnel_left(A, B, C & 31));
    case OP_SHFR_WRAP: EACH(funnel_right(A, B, C & 31));
    case OP_SHFL_CLAMP: EACH(funnel_left(A, B, clamp_32(C)));
    case OP_SHFR_CLAMP: EACH(funnel_right(A, B, clamp_32(C)));
    case OP_LOP3: EACH(logic3(A, B, C, sub));
    case OP_PRMT: EACH(permute(A, B, C, sub));
    case OP_BFE_U: EACH(extract(A, B, C, bits, 0));
    case OP_BFE_S: EACH(extract(A, B, C, bits, 1));
    case OP_BFI: EACH(insert(A, B, C, e[l], bits));
    case OP_BREV: EACH(reverse(A, bits));
    case OP_CLZ: EACH(leading_zeros(A, sh));
    case OP_POPC: EACH(__builtin_popcountll(A));
    case OP_BFIND_U: EACH(find_highest(A));
    case OP_BFIND_S: EACH(find_highest((uint64_t)(SA < 0 ? ~SA : SA)));
    case OP_SELP: EACH(C ? A : B);
    case OP_SLCT: EACH((int32_t)(uint32_t)C >= 0 ? A : B);
    case OP_DOT: EACH(dot(A, B, sub) + C);
    case OP_CVT:
        EACH(convert(A, in->src_sh, sub, sh, in->is_signed));
    case OP_SETP: alu_compare(in, d, d2, a, b, c); break;
    case OP_PACK: {
        memset(d, 0, sizeof d);
        for (int i = 0; i < in->n_src; i++) {
            const uint64_t *part = slot_values(mc, w, in->src[i]);
            for (int l = 0; l < LANES; l++)
                d[l] |= part[l] << sub * i;
        }
        break;
    }
    case OP_UNPACK: alu_unpack(mc, w, in, lanes); return;
    case OP_CVTA:
    case OP_CVTA_TO: alu_window(mc, in, lanes, memset(d, 0, sizeof d), a); break;
    default: ptx_stop(mc, PTX_BAD_LAUNCH, -1, "instruction %d without a meaning", in->op);
    }
    /* clang-format on */
    store_lanes(w, in->dst[0], d, lanes);
    if (in->n_dst > 1)
        store_lanes(w, in->dst[1], d2, lanes);
}
