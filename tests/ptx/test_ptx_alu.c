/* test_ptx_alu.c: every integer instruction form on edge cases and random operands, against an expression
 * that is computed here by other means than in alu.c: native C types, byte arrays, bit loops, long
 * multiplication. */
#include "testing.h"

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

/* The 128-bit product by 32-bit pieces. */
static u64 high_product(u64 a, u64 b)
{
    u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
    u64 middle = (al * bl >> 32) + (u32)(al * bh) + (u32)(ah * bl);
    return ah * bh + (al * bh >> 32) + (ah * bl >> 32) + (middle >> 32);
}

static u64 high_product_signed(u64 a, u64 b)
{
    return high_product(a, b) - ((s64)a < 0 ? b : 0) - ((s64)b < 0 ? a : 0);
}

static u64 ones(u64 n) { return n >= 64 ? ~(u64)0 : ((u64)1 << n) - 1; }
static u64 smaller(u64 a, u64 b) { return a < b ? a : b; }

static u64 field(u64 a, u64 position, u64 length, u64 bits, int is_signed)
{
    u64 pos = (u8)position, len = (u8)length, top = a >> (bits - 1) & 1;
    if (!len)
        return 0;
    if (pos >= bits)
        return is_signed && top ? ones(bits) : 0;
    u64 n = smaller(len, bits - pos), v = a >> pos & ones(n);
    return is_signed && v >> (n - 1) & 1 ? (v | ~ones(n)) & ones(bits) : v;
}

static u64 put_field(u64 a, u64 b, u64 position, u64 length, u64 bits)
{
    u64 pos = (u8)position, len = (u8)length;
    if (!len || pos >= bits)
        return b;
    u64 mask = ones(smaller(len, bits - pos)) << pos;
    return (a << pos & mask) | (b & ~mask);
}

static u64 permuted(u32 a, u32 b, u32 selector)
{
    u8 in[8], out[4];
    u32 d;
    memcpy(in, &a, 4);
    memcpy(in + 4, &b, 4);
    for (int i = 0; i < 4; i++, selector >>= 4)
        out[i] = selector & 8 ? (u8)((s8)in[selector & 7] >> 7) : in[selector & 7];
    memcpy(&d, out, 4);
    return d;
}

static u64 turned(u64 a, int bits)
{
    u64 d = 0;
    for (int i = 0; i < bits; i++, a >>= 1)
        d = d << 1 | (a & 1);
    return d;
}

static u64 zeros_before(u64 a, int bits)
{
    u64 n = 0;
    while (bits-- > 0 && !(a >> bits & 1))
        n++;
    return n;
}

static u64 population(u64 a)
{
    u64 n = 0;
    for (; a; a &= a - 1)
        n++;
    return n;
}

static u64 highest(u64 a)
{
    u64 n = (u32)-1;
    for (int i = 0; i < 64; i++)
        if (a >> i & 1)
            n = (u64)i;
    return n;
}

static u64 arithmetic_shift(s64 a, u64 n, int bits)
{
    return (u64)(a >> smaller(n, (u64)bits - 1)) & ones((u64)bits);
}

/* name, instruction on d, a, b, c, their widths (1 is a predicate), expected d */
/* clang-format off */
#define FORMS(X) \
    X(add_u16,    "add.u16 d, a, b;",          16, 16, 16, 16, (u16)(a + b)) \
    X(add_s32,    "add.s32 d, a, b;",          32, 32, 32, 32, (u32)a + (u32)b) \
    X(add_imm,    "add.s32 d, a, -7;",         32, 32, 32, 32, (u32)a - 7u) \
    X(add_s64,    "add.s64 d, a, b;",          64, 64, 64, 64, a + b) \
    X(add_imm64,  "add.s64 d, a, -4294967297;", 64, 64, 64, 64, a - 4294967297u) \
    X(sub_u16,    "sub.s16 d, a, b;",          16, 16, 16, 16, (u16)(a - b)) \
    X(sub_u32,    "sub.u32 d, a, b;",          32, 32, 32, 32, (u32)a - (u32)b) \
    X(sub_imm,    "sub.s32 d, 0x80000000, a;", 32, 32, 32, 32, 0x80000000u - (u32)a) \
    X(sub_s64,    "sub.s64 d, a, b;",          64, 64, 64, 64, a - b) \
    X(addc_32,    "add.cc.u32 d, a, b; addc.u32 d, c, 0;", 32, 32, 32, 32, (u32)(c + ((a + b) >> 32))) \
    X(addc_chain, "add.cc.s32 d, a, b; addc.cc.s32 d, c, b; addc.s32 d, 5, 6;", 32, 32, 32, 32, \
                  11 + ((c + b + ((a + b) >> 32)) >> 32)) \
    X(addc_64,    "add.cc.u64 d, a, b; addc.u64 d, c, a;", 64, 64, 64, 64, c + a + (a + b < a)) \
    X(subc_32,    "sub.cc.u32 d, a, b; subc.u32 d, c, 9;", 32, 32, 32, 32, (u32)(c - 9 - (a < b))) \
    X(subc_chain, "sub.cc.u32 d, a, b; subc.cc.u32 d, c, b; subc.u32 d, 5, 6;", 32, 32, 32, 32, \
                  (u32)(0u - 1u - (c < b + (a < b)))) \
    X(subc_64,    "sub.cc.s64 d, a, b; subc.s64 d, c, a;", 64, 64, 64, 64, c - a - (a < b)) \
    X(mul_lo_16,  "mul.lo.s16 d, a, b;",       16, 16, 16, 16, (u16)((u32)a * (u32)b)) \
    X(mul_lo_32,  "mul.lo.s32 d, a, b;",       32, 32, 32, 32, (u32)a * (u32)b) \
    X(mul_lo_64,  "mul.lo.u64 d, a, b;",       64, 64, 64, 64, a * b) \
    X(mul_hi_u16, "mul.hi.u16 d, a, b;",       16, 16, 16, 16, (u32)a * (u32)b >> 16) \
    X(mul_hi_s16, "mul.hi.s16 d, a, b;",       16, 16, 16, 16, (u16)((s32)(s16)a * (s16)b >> 16)) \
    X(mul_hi_u32, "mul.hi.u32 d, a, b;",       32, 32, 32, 32, a * b >> 32) \
    X(mul_hi_s32, "mul.hi.s32 d, a, b;",       32, 32, 32, 32, (u32)((s64)(s32)a * (s32)b >> 32)) \
    X(mul_hi_u64, "mul.hi.u64 d, a, b;",       64, 64, 64, 64, high_product(a, b)) \
    X(mul_hi_s64, "mul.hi.s64 d, a, b;",       64, 64, 64, 64, high_product_signed(a, b)) \
    X(wide_u16,   "mul.wide.u16 d, a, b;",     32, 16, 16, 16, (u32)a * (u32)b) \
    X(wide_s16,   "mul.wide.s16 d, a, b;",     32, 16, 16, 16, (u32)((s32)(s16)a * (s16)b)) \
    X(wide_u32,   "mul.wide.u32 d, a, b;",     64, 32, 32, 32, a * b) \
    X(wide_s32,   "mul.wide.s32 d, a, b;",     64, 32, 32, 32, (u64)((s64)(s32)a * (s32)b)) \
    X(wide_imm,   "mul.wide.s32 d, a, -12;",   64, 32, 32, 32, (u64)((s64)(s32)a * -12)) \
    X(mad_lo_16,  "mad.lo.u16 d, a, b, c;",    16, 16, 16, 16, (u16)((u32)a * (u32)b + c)) \
    X(mad_lo_32,  "mad.lo.s32 d, a, b, c;",    32, 32, 32, 32, (u32)(a * b + c)) \
    X(mad_lo_64,  "mad.lo.s64 d, a, b, c;",    64, 64, 64, 64, a * b + c) \
    X(mad_hi_u32, "mad.hi.u32 d, a, b, c;",    32, 32, 32, 32, (u32)((a * b >> 32) + c)) \
    X(mad_hi_s32, "mad.hi.s32 d, a, b, c;",    32, 32, 32, 32, (u32)((u64)((s64)(s32)a * (s32)b >> 32) + c)) \
    X(mad_hi_u64, "mad.hi.u64 d, a, b, c;",    64, 64, 64, 64, high_product(a, b) + c) \
    X(mad_hi_s64, "mad.hi.s64 d, a, b, c;",    64, 64, 64, 64, high_product_signed(a, b) + c) \
    X(madwide_u,  "mad.wide.u32 d, a, b, c;",  64, 32, 32, 64, a * b + c) \
    X(madwide_s,  "mad.wide.s32 d, a, b, c;",  64, 32, 32, 64, (u64)((s64)(s32)a * (s32)b) + c) \
    X(madwide_16, "mad.wide.s16 d, a, b, c;",  32, 16, 16, 32, (u32)((s32)(s16)a * (s16)b) + (u32)c) \
    X(div_u16,    "div.u16 d, a, b;",          16, 16, 16, 16, (u16)a / (u16)b) \
    X(div_s16,    "div.s16 d, a, b;",          16, 16, 16, 16, (u16)((s32)(s16)a / (s16)b)) \
    X(div_u32,    "div.u32 d, a, b;",          32, 32, 32, 32, (u32)a / (u32)b) \
    X(div_s32,    "div.s32 d, a, b;",          32, 32, 32, 32, (u32)((s64)(s32)a / (s32)b)) \
    X(div_u64,    "div.u64 d, a, b;",          64, 64, 64, 64, a / b) \
    X(div_s64,    "div.s64 d, a, b;",          64, 64, 64, 64, b + 1 ? (u64)((s64)a / (s64)b) : 0 - a) \
    X(rem_u16,    "rem.u16 d, a, b;",          16, 16, 16, 16, (u16)a % (u16)b) \
    X(rem_s16,    "rem.s16 d, a, b;",          16, 16, 16, 16, (u16)((s32)(s16)a % (s16)b)) \
    X(rem_u32,    "rem.u32 d, a, b;",          32, 32, 32, 32, (u32)a % (u32)b) \
    X(rem_s32,    "rem.s32 d, a, b;",          32, 32, 32, 32, (u32)((s64)(s32)a % (s32)b)) \
    X(rem_u64,    "rem.u64 d, a, b;",          64, 64, 64, 64, a % b) \
    X(rem_s64,    "rem.s64 d, a, b;",          64, 64, 64, 64, b + 1 ? (u64)((s64)a % (s64)b) : 0) \
    X(min_u32,    "min.u32 d, a, b;",          32, 32, 32, 32, a < b ? a : b) \
    X(min_s32,    "min.s32 d, a, b;",          32, 32, 32, 32, (s32)a < (s32)b ? a : b) \
    X(min_s16,    "min.s16 d, a, b;",          16, 16, 16, 16, (s16)a < (s16)b ? a : b) \
    X(min_s64,    "min.s64 d, a, b;",          64, 64, 64, 64, (s64)a < (s64)b ? a : b) \
    X(min_u64,    "min.u64 d, a, b;",          64, 64, 64, 64, a < b ? a : b) \
    X(max_u16,    "max.u16 d, a, b;",          16, 16, 16, 16, a > b ? a : b) \
    X(max_s32,    "max.s32 d, a, b;",          32, 32, 32, 32, (s32)a > (s32)b ? a : b) \
    X(max_s64,    "max.s64 d, a, b;",          64, 64, 64, 64, (s64)a > (s64)b ? a : b) \
    X(max_u64,    "max.u64 d, a, b;",          64, 64, 64, 64, a > b ? a : b) \
    X(abs_s16,    "abs.s16 d, a;",             16, 16, 16, 16, \
                  (u16)((s16)a < 0 ? -(s32)(s16)a : (s32)(s16)a)) \
    X(abs_s32,    "abs.s32 d, a;",             32, 32, 32, 32, (u32)llabs((s32)a)) \
    X(abs_s64,    "abs.s64 d, a;",             64, 64, 64, 64, (s64)a < 0 ? 0 - a : a) \
    X(neg_s16,    "neg.s16 d, a;",             16, 16, 16, 16, (u16)(0 - a)) \
    X(neg_s32,    "neg.s32 d, a;",             32, 32, 32, 32, (u32)(0 - a)) \
    X(neg_s64,    "neg.s64 d, a;",             64, 64, 64, 64, 0 - a) \
    X(dp4a_u,     "dp4a.u32.u32 d, a, b, c;",  32, 32, 32, 32, \
                  (u32)((u8)a * (u8)b + (u8)(a >> 8) * (u8)(b >> 8) + (u8)(a >> 16) * (u8)(b >> 16) + \
                        (u8)(a >> 24) * (u8)(b >> 24) + c)) \
    X(dp4a_su,    "dp4a.s32.u32 d, a, b, c;",  32, 32, 32, 32, \
                  (u32)((s8)a * (u8)b + (s8)(a >> 8) * (u8)(b >> 8) + (s8)(a >> 16) * (u8)(b >> 16) + \
                        (s8)(a >> 24) * (u8)(b >> 24)) + (u32)c) \
    X(dp2a_lo_u,  "dp2a.lo.u32.u32 d, a, b, c;", 32, 32, 32, 32, \
                  (u32)((u32)(u16)a * (u8)b + (u32)(u16)(a >> 16) * (u8)(b >> 8) + (u32)c)) \
    X(dp2a_lo_us, "dp2a.lo.u32.s32 d, a, b, c;", 32, 32, 32, 32, \
                  (u32)((s32)(u16)a * (s8)b + (s32)(u16)(a >> 16) * (s8)(b >> 8)) + (u32)c) \
    X(dp2a_hi_su, "dp2a.hi.s32.u32 d, a, b, c;", 32, 32, 32, 32, \
                  (u32)((s32)(s16)a * (u8)(b >> 16) + (s32)(s16)(a >> 16) * (u8)(b >> 24)) + (u32)c) \
    X(and_b16,    "and.b16 d, a, b;",          16, 16, 16, 16, a & b) \
    X(and_b32,    "and.b32 d, a, -16;",        32, 32, 32, 32, a & 0xFFFFFFF0u) \
    X(and_b64,    "and.b64 d, a, -4294967296;", 64, 64, 64, 64, a >> 32 << 32) \
    X(or_b32,     "or.b32 d, a, b;",           32, 32, 32, 32, a | b) \
    X(or_b64,     "or.b64 d, a, b;",           64, 64, 64, 64, a | b) \
    X(xor_b32,    "xor.b32 d, a, b;",          32, 32, 32, 32, a ^ b) \
    X(xor_b64,    "xor.b64 d, a, b;",          64, 64, 64, 64, a ^ b) \
    X(not_b16,    "not.b16 d, a;",             16, 16, 16, 16, (u16)~a) \
    X(not_b32,    "not.b32 d, a;",             32, 32, 32, 32, (u32)~a) \
    X(not_b64,    "not.b64 d, a;",             64, 64, 64, 64, ~a) \
    X(cnot_b32,   "cnot.b32 d, a;",            32, 32, 32, 32, !a) \
    X(and_pred,   "and.pred d, a, b;",          1,  1,  1,  1, a & b) \
    X(or_pred,    "or.pred d, a, b;",           1,  1,  1,  1, a | b) \
    X(xor_pred,   "xor.pred d, a, b;",          1,  1,  1,  1, a ^ b) \
    X(not_pred,   "not.pred d, a;",             1,  1,  1,  1, !a) \
    X(mov_pred,   "mov.pred d, a;",             1,  1,  1,  1, a) \
    X(mov_pred_1, "mov.pred d, -1;",            1,  1,  1,  1, 1) \
    X(shl_b16,    "shl.b16 d, a, b;",          16, 16, 32, 16, b > 15 ? 0 : (u16)(a << b)) \
    X(shl_b32,    "shl.b32 d, a, b;",          32, 32, 32, 32, b > 31 ? 0 : (u32)(a << b)) \
    X(shl_b64,    "shl.b64 d, a, b;",          64, 64, 32, 64, b > 63 ? 0 : a << b) \
    X(shl_imm,    "shl.b64 d, a, 3;",          64, 64, 32, 64, a * 8) \
    X(shr_u16,    "shr.u16 d, a, b;",          16, 16, 32, 16, b > 15 ? 0 : a >> b) \
    X(shr_b32,    "shr.b32 d, a, b;",          32, 32, 32, 32, b > 31 ? 0 : a >> b) \
    X(shr_u64,    "shr.u64 d, a, b;",          64, 64, 32, 64, b > 63 ? 0 : a >> b) \
    X(shr_s16,    "shr.s16 d, a, b;",          16, 16, 32, 16, arithmetic_shift((s16)a, b, 16)) \
    X(shr_s32,    "shr.s32 d, a, b;",          32, 32, 32, 32, arithmetic_shift((s32)a, b, 32)) \
    X(shr_s64,    "shr.s64 d, a, b;",          64, 64, 32, 64, arithmetic_shift((s64)a, b, 64)) \
    X(shf_l_wrap, "shf.l.wrap.b32 d, a, b, c;", 32, 32, 32, 32, \
                  c & 31 ? (u32)(b << (c & 31) | a >> (32 - (c & 31))) : b) \
    X(shf_r_wrap, "shf.r.wrap.b32 d, a, b, c;", 32, 32, 32, 32, \
                  c & 31 ? (u32)(b << (32 - (c & 31)) | a >> (c & 31)) : a) \
    X(shf_l_clmp, "shf.l.clamp.b32 d, a, b, c;", 32, 32, 32, 32, \
                  c > 31 ? a : c ? (u32)(b << c | a >> (32 - c)) : b) \
    X(shf_r_clmp, "shf.r.clamp.b32 d, a, b, c;", 32, 32, 32, 32, \
                  c > 31 ? b : c ? (u32)(b << (32 - c) | a >> c) : a) \
    X(lop3_96,    "lop3.b32 d, a, b, c, 0x96;", 32, 32, 32, 32, a ^ b ^ c) \
    X(lop3_e8,    "lop3.b32 d, a, b, c, 0xE8;", 32, 32, 32, 32, (a & b) | (b & c) | (a & c)) \
    X(lop3_ca,    "lop3.b32 d, a, b, c, 202;",  32, 32, 32, 32, (a & b) | ((u32)~a & c)) \
    X(lop3_1e,    "lop3.b32 d, a, b, c, 0x1E;", 32, 32, 32, 32, a ^ (b | c)) \
    X(lop3_0f,    "lop3.b32 d, a, b, c, 0x0F;", 32, 32, 32, 32, (u32)~a) \
    X(lop3_40,    "lop3.b32 d, a, b, c, 0x40;", 32, 32, 32, 32, a & b & (u32)~c) \
    X(prmt,       "prmt.b32 d, a, b, c;",      32, 32, 32, 32, permuted((u32)a, (u32)b, (u32)c)) \
    X(prmt_5140,  "prmt.b32 d, a, b, 0x5140U;", 32, 32, 32, 32, \
                  (a & 255) | (b & 255) << 8 | (a >> 8 & 255) << 16 | \
                  (b >> 8 & 255) << 24) \
    X(prmt_f4e,   "prmt.b32.f4e d, a, b, c;",  32, 32, 32, 32, (u32)((b << 32 | a) >> 8 * (c & 3))) \
    X(prmt_b4e,   "prmt.b32.b4e d, a, b, c;",  32, 32, 32, 32, \
                  permuted((u32)a, (u32)b, (u32[]){0x5670, 0x6701, 0x7012, 0x0123}[c & 3])) \
    X(prmt_rc8,   "prmt.b32.rc8 d, a, b, c;",  32, 32, 32, 32, \
                  (u32)((a >> 8 * (c & 3) & 255) * 0x01010101u)) \
    X(prmt_ecl,   "prmt.b32.ecl d, a, b, c;",  32, 32, 32, 32, \
                  permuted((u32)a, (u32)b, (u32[]){0x3210, 0x3211, 0x3222, 0x3333}[c & 3])) \
    X(prmt_ecr,   "prmt.b32.ecr d, a, b, c;",  32, 32, 32, 32, \
                  permuted((u32)a, (u32)b, (u32[]){0x0000, 0x1110, 0x2210, 0x3210}[c & 3])) \
    X(prmt_rc16,  "prmt.b32.rc16 d, a, b, c;", 32, 32, 32, 32, \
                  (u32)((a >> 16 * (c & 1) & 65535) * 0x00010001u)) \
    X(bfe_u32,    "bfe.u32 d, a, b, c;",       32, 32, 32, 32, field(a, b, c, 32, 0)) \
    X(bfe_s32,    "bfe.s32 d, a, b, c;",       32, 32, 32, 32, field(a, b, c, 32, 1)) \
    X(bfe_u64,    "bfe.u64 d, a, b, c;",       64, 64, 32, 32, field(a, b, c, 64, 0)) \
    X(bfe_s64,    "bfe.s64 d, a, b, c;",       64, 64, 32, 32, field(a, b, c, 64, 1)) \
    X(bfi_b32,    "bfi.b32 d, a, b, c, 7;",    32, 32, 32, 32, put_field(a, b, c, 7, 32)) \
    X(bfi_len,    "bfi.b32 d, a, b, 5, c;",    32, 32, 32, 32, put_field(a, b, 5, c, 32)) \
    X(bfi_b64,    "bfi.b64 d, a, b, c, 20;",   64, 64, 64, 32, put_field(a, b, c, 20, 64)) \
    X(brev_b32,   "brev.b32 d, a;",            32, 32, 32, 32, turned(a, 32)) \
    X(brev_b64,   "brev.b64 d, a;",            64, 64, 64, 64, turned(a, 64)) \
    X(clz_b32,    "clz.b32 d, a;",             32, 32, 32, 32, zeros_before(a, 32)) \
    X(clz_b64,    "clz.b64 d, a;",             32, 64, 64, 64, zeros_before(a, 64)) \
    X(popc_b32,   "popc.b32 d, a;",            32, 32, 32, 32, population(a)) \
    X(popc_b64,   "popc.b64 d, a;",            32, 64, 64, 64, population(a)) \
    X(bfind_u32,  "bfind.u32 d, a;",           32, 32, 32, 32, highest(a)) \
    X(bfind_s32,  "bfind.s32 d, a;",           32, 32, 32, 32, highest((s32)a < 0 ? (u32)~a : a)) \
    X(bfind_u64,  "bfind.u64 d, a;",           32, 64, 64, 64, highest(a)) \
    X(bfind_s64,  "bfind.s64 d, a;",           32, 64, 64, 64, highest((s64)a < 0 ? ~a : a)) \
    X(selp_b16,   "selp.b16 d, a, b, c;",      16, 16, 16,  1, c ? a : b) \
    X(selp_b32,   "selp.b32 d, a, 77, c;",     32, 32, 32,  1, c ? a : 77) \
    X(selp_s64,   "selp.s64 d, a, b, c;",      64, 64, 64,  1, c ? a : b) \
    X(slct_b32,   "slct.b32.s32 d, a, b, c;",  32, 32, 32, 32, c >> 31 ? b : a) \
    X(slct_u64,   "slct.u64.s32 d, a, b, c;",  64, 64, 64, 32, c >> 31 ? b : a) \
    X(setp_eq16,  "setp.eq.b16 d, a, b;",       1, 16, 16, 16, (u16)a == (u16)b) \
    X(setp_ne64,  "setp.ne.s64 d, a, b;",       1, 64, 64, 64, a != b) \
    X(setp_lt_u,  "setp.lt.u32 d, a, b;",       1, 32, 32, 32, (u32)a < (u32)b) \
    X(setp_lt_s,  "setp.lt.s32 d, a, b;",       1, 32, 32, 32, (s32)a < (s32)b) \
    X(setp_le_s,  "setp.le.s64 d, a, b;",       1, 64, 64, 64, (s64)a <= (s64)b) \
    X(setp_gt_s,  "setp.gt.s16 d, a, b;",       1, 16, 16, 16, (s16)a > (s16)b) \
    X(setp_gt_i,  "setp.gt.s32 d, a, -1;",      1, 32, 32, 32, (s32)a > -1) \
    X(setp_ge_u,  "setp.ge.u64 d, a, b;",       1, 64, 64, 64, a >= b) \
    X(setp_lo,    "setp.lo.u32 d, a, b;",       1, 32, 32, 32, a < b) \
    X(setp_ls,    "setp.ls.u32 d, a, b;",       1, 32, 32, 32, a <= b) \
    X(setp_hi,    "setp.hi.u32 d, a, b;",       1, 32, 32, 32, a > b) \
    X(setp_hs,    "setp.hs.u32 d, a, b;",       1, 32, 32, 32, a >= b) \
    X(setp_and,   "setp.lt.and.u32 d, a, b, c;", 1, 32, 32, 1, (a < b) & c) \
    X(setp_or,    "setp.ge.or.s32 d, a, b, !c;", 1, 32, 32, 1, ((s32)a >= (s32)b) | !c) \
    X(setp_xor,   "setp.eq.xor.u32 d, a, b, c;", 1, 32, 32, 1, (a == b) ^ c) \
    X(setp_pq,    "setp.lt.and.s32 p|d, a, b, c;", 1, 32, 32, 1, ((s32)a >= (s32)b) & c) \
    X(setp_sink,  "setp.lt.u32 _|d, a, b;",     1, 32, 32, 32, a >= b) \
    X(cvt_u8,     "cvt.u8.u32 d, a;",          32, 32, 32, 32, (u8)a) \
    X(cvt_s8,     "cvt.s8.s32 d, a;",          16, 32, 32, 32, (u16)(s8)a) \
    X(cvt_s8_32,  "cvt.s32.s8 d, a;",          32, 32, 32, 32, (u32)(s8)a) \
    X(cvt_s8_16,  "cvt.s16.s8 d, a;",          16, 16, 16, 16, (u16)(s8)a) \
    X(cvt_u16_8,  "cvt.u16.u8 d, a;",          16, 16, 16, 16, (u8)a) \
    X(cvt_u16,    "cvt.u16.u64 d, a;",         16, 64, 64, 64, (u16)a) \
    X(cvt_u32_16, "cvt.u32.u16 d, a;",         32, 16, 16, 16, (u16)a) \
    X(cvt_s32_16, "cvt.s32.s16 d, a;",         32, 16, 16, 16, (u32)(s16)a) \
    X(cvt_u32_s8, "cvt.u32.s8 d, a;",          32, 16, 16, 16, (u32)(s8)a) \
    X(cvt_s64_32, "cvt.s64.s32 d, a;",         64, 32, 32, 32, (u64)(s32)a) \
    X(cvt_u64_32, "cvt.u64.u32 d, a;",         64, 32, 32, 32, (u32)a) \
    X(cvt_u64_s,  "cvt.u64.s32 d, a;",         64, 32, 32, 32, (u64)(s32)a) \
    X(cvt_u32_64, "cvt.u32.u64 d, a;",         32, 64, 64, 64, (u32)a) \
    X(cvt_s64_8,  "cvt.s64.s8 d, a;",          64, 64, 64, 64, (u64)(s8)a) \
    X(cvt_imm,    "cvt.s64.s16 d, -3;",        64, 64, 64, 64, (u64)-3) \
    X(mov_b16,    "mov.u16 d, a;",             16, 16, 16, 16, a) \
    X(mov_f32,    "mov.f32 d, 0f3FC00000;",    32, 32, 32, 32, 0x3FC00000) \
    X(mov_f64,    "mov.f64 d, 0d3FF8000000000000;", 64, 64, 64, 64, 0x3FF8000000000000) \
    X(mov_neg,    "mov.b64 d, -1;",            64, 64, 64, 64, ~(u64)0) \
    X(mov_oct,    "mov.u32 d, 017;",           32, 32, 32, 32, 15) \
    X(mov_bin,    "mov.u32 d, 0b101;",         32, 32, 32, 32, 5) \
    X(mov_warp,   "mov.u32 d, WARP_SZ;",       32, 32, 32, 32, 32) \
    X(pack_2x32,  "mov.b64 d, {a, b};",        64, 32, 32, 32, b << 32 | a) \
    X(pack_2x16,  "mov.b32 d, {a, b};",        32, 16, 16, 16, b << 16 | a) \
    X(pack_4x16,  "mov.b64 d, {a, b, c, a};",  64, 16, 16, 16, a << 48 | c << 32 | b << 16 | a) \
    X(pack_imm,   "mov.b64 d, {a, -1};",       64, 32, 32, 32, 0xFFFFFFFFull << 32 | a) \
    X(unpack_lo,  "mov.b64 {d, _}, a;",        32, 64, 64, 64, (u32)a) \
    X(unpack_hi,  "mov.b64 {_, d}, a;",        32, 64, 64, 64, a >> 32) \
    X(unpack_16,  "mov.b64 {_, _, d, _}, a;",  16, 64, 64, 64, (u16)(a >> 32)) \
    X(unpack_own, "mov.b64 d, a; { .reg .b32 u, v; mov.b64 {u, v}, d; mov.b64 d, {v, u}; }", 64, 64, 64, 64, \
                  a << 32 | a >> 32) \
    X(guarded,    "mov.u32 d, a; @c mov.u32 d, b; @!c add.u32 d, d, 1;", 32, 32, 32, 1, \
                  c ? b : (u32)(a + 1)) \
    X(lane_masks, "{ .reg .b32 u, v; mov.u32 u, %lanemask_lt; mov.u32 v, %lanemask_ge; add.u32 d, u, v; " \
                  "mov.u32 u, %lanemask_eq; mov.u32 v, %lanemask_gt; or.b32 u, u, v; mov.u32 v, \
                  %lanemask_le; " \
                  "xor.b32 u, u, v; sub.u32 d, d, u; popc.b32 d, d; mov.u32 u, %laneid; }", 32, 32, 32, 32, \
                  1 /* lt + ge is all ones, (eq | gt) ^ le is that without the own bit */)
/* clang-format on */

#define DEFINE(name, text, wd, wa, wb, wc, value)                                                            \
    static u64 want_##name(u64 a, u64 b, u64 c)                                                              \
    {                                                                                                        \
        (void)a, (void)b, (void)c;                                                                           \
        return (u64)(value);                                                                                 \
    }
FORMS(DEFINE)

static const struct form {
    const char *name, *text;
    int width[4]; /* d, a, b, c */
    u64 (*want)(u64 a, u64 b, u64 c);
} forms[] = {
#define ROW(name, text, wd, wa, wb, wc, value) {#name, text, {wd, wa, wb, wc}, want_##name},
    FORMS(ROW)};

/* One thread a case: d = form(a, b, c) of three 64-bit words cut to their widths. */
static void write_kernel(const struct form *f, char *to, size_t room)
{
    static const char name[] = "dabc";
    size_t n =
        (size_t)snprintf(to, room,
                         ".version 9.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry form(.param .u64 to, .param .u64 from)\n{\n"
                         ".reg .pred p;\n.reg .b32 i;\n.reg .b64 x<5>;\n"
                         "mov.u32 i, %%tid.x;\nld.param.u64 x4, [from];\nmad.wide.u32 x4, i, 24, x4;\n"
                         "ld.global.u64 x1, [x4];\nld.global.u64 x2, [x4+8];\nld.global.u64 x3, [x4+16];\n");
    for (int k = 0; k < 4; k++) {
        int w = f->width[k];
        char type[8];
        snprintf(type, sizeof type, "b%d", w);
        n += (size_t)snprintf(to + n, room - n, ".reg .%s %c;\n", w == 1 ? "pred" : type, name[k]);
        if (k && w == 1)
            n += (size_t)snprintf(to + n, room - n, "setp.ne.u64 %c, x%d, 0;\n", name[k], k);
        else if (k)
            n += (size_t)snprintf(to + n, room - n, "cvt.u%d.u64 %c, x%d;\n", w, name[k], k);
    }
    n += (size_t)snprintf(to + n, room - n, "%s\n", f->text);
    if (f->width[0] == 1)
        n += (size_t)snprintf(to + n, room - n, "selp.u64 x0, 1, 0, d;\n");
    else
        n += (size_t)snprintf(to + n, room - n, "cvt.u64.u%d x0, d;\n", f->width[0]);
    snprintf(to + n, room - n,
             "ld.param.u64 x4, [to];\nmad.wide.u32 x4, i, 8, x4;\nst.global.u64 [x4], x0;\nret;\n}\n");
}

static u64 edge_or_random(u64 *state)
{
    static const u64 edges[] = {0,
                                1,
                                2,
                                5,
                                7,
                                8,
                                15,
                                16,
                                31,
                                32,
                                33,
                                63,
                                64,
                                65,
                                127,
                                128,
                                255,
                                256,
                                0x7FFF,
                                0x8000,
                                0xFFFF,
                                0x10000,
                                0x7FFFFFFF,
                                0x80000000,
                                0xFFFFFFFF,
                                0x100000000,
                                0x7FFFFFFFFFFFFFFF,
                                0x8000000000000000,
                                0xFFFFFFFFFFFFFFFF,
                                0xFFFFFFFFFFFFFFFE,
                                0x3210,
                                0x7654,
                                0x89AB};
    u64 r = next_random(state);
    return r % 3 ? edges[r / 3 % (sizeof edges / sizeof *edges)] : next_random(state) >> (r / 3 % 64);
}

START_TEST(an_instruction_form_gives_what_its_definition_says)
{
    enum { CASES = 1024 };
    static u64 in[CASES][3], out[CASES];
    const struct form *f = &forms[_i];
    int divides = !strncmp(f->text, "div", 3) || !strncmp(f->text, "rem", 3);
    u64 state = 0x1234567 + (u64)_i;
    char text[2048];
    struct ptx_report r;
    for (int i = 0; i < CASES; i++) {
        for (int k = 0; k < 3; k++) {
            in[i][k] = edge_or_random(&state) & ones((u64)f->width[k + 1]);
            if (f->width[k + 1] == 1)
                in[i][k] = next_random(&state) & 1;
        }
        if (next_random(&state) % 8 == 0)
            in[i][1] = in[i][0] & ones((u64)f->width[2]);
        if (divides && !in[i][1])
            in[i][1] = 3;
    }
    write_kernel(f, text, sizeof text);
    struct ptx_module *m = load_text(text);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{out, sizeof out, 1, 0, NULL}, {in, sizeof in, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0)};
    struct ptx_launch l = {"form", {1, 1, 1}, {CASES, 1, 1}, 0, params, 2, 0};
    run_fine(w, m, &l, 1, &r);
    for (int i = 0; i < CASES; i++) {
        u64 want = f->want(in[i][0], in[i][1], in[i][2]);
        ck_assert_msg(out[i] == want, "%s a=0x%llx b=0x%llx c=0x%llx: 0x%llx, want 0x%llx", f->text,
                      (unsigned long long)in[i][0], (unsigned long long)in[i][1],
                      (unsigned long long)in[i][2], (unsigned long long)out[i], (unsigned long long)want);
    }
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

/* Loads and stores of each type: sign or zero extended to the register, cut to the element. */
START_TEST(loads_extend_and_stores_cut)
{
    static const struct {
        const char *load;
        int bits;
        u64 want;
    } cases[] = {{"ld.global.u8", 64, 0x81},
                 {"ld.global.s8", 64, ~(u64)0x7E},
                 {"ld.global.b8", 32, 0x81},
                 {"ld.global.s8", 16, 0xFF81},
                 {"ld.global.s8", 32, 0xFFFFFF81},
                 {"ld.global.u16", 32, 0x8281},
                 {"ld.global.s16", 64, ~(u64)0x7D7E},
                 {"ld.global.s16", 16, 0x8281},
                 {"ld.global.u32", 64, 0x84838281},
                 {"ld.global.s32", 64, ~(u64)0x7B7C7D7E},
                 {"ld.global.b64", 64, 0x8887868584838281}};
    unsigned char in[8] = {0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        u64 out[2] = {0};
        char text[1024];
        struct ptx_report r;
        snprintf(
            text, sizeof text,
            ".version 9.0\n.target sm_90\n.address_size 64\n.entry e(.param .u64 to, .param .u64 from)\n{\n"
            ".reg .b64 x<4>;\n.reg .b%d d;\nld.param.u64 x0, [to];\nld.param.u64 x1, [from];\n%s d, [x1];\n"
            "cvt.u64.u%d x2, d;\nst.global.u64 [x0], x2;\nst.global.b8 [x0+8], d;\nst.global.u16 [x0+10], "
            "d;\n}\n",
            cases[i].bits, cases[i].load, cases[i].bits);
        unsigned char must[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0};
        struct ptx_module *m = load_text(text);
        struct ptx_world *w = ptx_world_new(
            (struct ptx_buffer[]){{out, sizeof out, 1, 0, must}, {in, sizeof in, 0, 0, NULL}}, 2);
        struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0)};
        run_fine(w, m, &(struct ptx_launch){"e", {1, 1, 1}, {1, 1, 1}, 0, params, 2, 0}, 1, &r);
        ck_assert_msg(out[0] == cases[i].want, "%s to %d bits: 0x%llx", cases[i].load, cases[i].bits,
                      (unsigned long long)out[0]);
        ck_assert_uint_eq(out[1], (cases[i].want & 255) | (cases[i].want & 65535) << 16);
        ptx_world_free(w);
        ptx_free(m);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ptx_alu");
    TCase *c = tcase_create("forms");
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    tcase_add_loop_test(c, an_instruction_form_gives_what_its_definition_says, 0,
                        sizeof forms / sizeof *forms);
    tcase_add_test(c, loads_extend_and_stores_cut);
    return run_suite(s);
}
