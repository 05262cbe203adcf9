/* operand.c: operands of an instruction: registers, numbers, addresses, the guard. */
#include "parse.h"

uint64_t ptx_width_mask(int bits) { return bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1; }

void ptx_parse_guard(struct parser *p, struct insn *in)
{
    struct type type;
    in->guard = NO_SLOT;
    if (!ptx_accept(p, '@'))
        return;
    in->guard_not = (uint8_t)ptx_accept(p, '!');
    const struct token *t = ptx_next(p);
    if (!ptx_find_register(p, t, &in->guard, &type) || type.kind != 'p')
        ptx_refuse(p, t, "guard is not a predicate register");
}

/* A register of `bits` (1: a predicate), or at least `bits` if wider_too; its width to *width. */
static int parse_register(struct parser *p, int bits, int wider_too, int *width)
{
    const struct token *t = ptx_next(p);
    struct type type;
    int slot;
    if (!ptx_find_register(p, t, &slot, &type))
        ptx_refuse(p, t, "not a known register");
    if ((type.kind == 'p') != (bits == 1) || type.bits < bits || (type.bits > bits && !wider_too))
        ptx_refuse(p, t, "register of another width than the instruction");
    if (width)
        *width = type.bits;
    return slot;
}

int ptx_parse_destination(struct parser *p, int bits, int wider_too, int *width)
{
    const struct token *t = ptx_peek(p);
    if (ptx_is_word(t, "_")) {
        ptx_next(p);
        if (width)
            *width = 64;
        return NO_SLOT;
    }
    for (int s = 0; s < SPECIALS; s++)
        if (ptx_is_word(t, ptx_special_name[s]))
            ptx_refuse(p, t, "special register as a destination");
    return parse_register(p, bits, wider_too, width);
}

void ptx_add_source(struct parser *p, struct insn *in, int slot)
{
    if (in->n_src == MAX_SOURCES)
        ptx_refuse(p, ptx_peek(p), "too many operands");
    in->src[in->n_src++] = slot;
}

int ptx_parse_source(struct parser *p, int bits, int wider_too)
{
    const struct token *t = ptx_peek(p);
    if (t->kind == TOKEN_NUMBER || (t->kind == TOKEN_PUNCT && *t->at == '-'))
        return ptx_constant(p, ptx_number(p, bits));
    if (ptx_is_word(t, "WARP_SZ")) {
        ptx_next(p);
        return ptx_constant(p, LANES);
    }
    return parse_register(p, bits, wider_too, NULL);
}

/* The address of a variable as a number in its own space. */
int ptx_parse_symbol(struct parser *p, int bits, enum space *space)
{
    const struct token *t = ptx_next(p);
    const struct var *v = t->kind == TOKEN_WORD ? ptx_find_var(p, t) : NULL;
    uint64_t address;
    if (!v)
        ptx_refuse(p, t, "not a register, number or variable");
    if (bits != 64 && (bits != 32 || v->space == SPACE_GLOBAL))
        ptx_refuse(p, t, "address does not fit the type");
    address = v->address;
    if (ptx_accept(p, '+'))
        address += ptx_number(p, 64);
    *space = v->space;
    return ptx_constant(p, address & ptx_width_mask(bits));
}

int ptx_is_variable(struct parser *p)
{
    const struct token *t = ptx_peek(p);
    struct type type;
    int slot;
    return t->kind == TOKEN_WORD && !ptx_find_register(p, t, &slot, &type) && ptx_find_var(p, t);
}

/* [register], [register+n], [variable], [variable+n], [n] for an access in `space`. */
int ptx_parse_address(struct parser *p, enum space space, int64_t *offset, uint64_t *mask)
{
    int slot, bits = 64;
    const struct token *t;
    ptx_expect(p, '[');
    t = ptx_peek(p);
    *offset = 0;
    if (t->kind == TOKEN_NUMBER) {
        slot = ptx_constant(p, ptx_number(p, 64));
    } else if (ptx_is_variable(p)) {
        enum space found;
        slot = ptx_parse_symbol(p, 64, &found);
        if (found != space)
            ptx_refuse(p, t, "variable of another space");
    } else {
        slot = parse_register(p, 32, 1, &bits);
        if (bits == 32 && (space == SPACE_GLOBAL || space == SPACE_GENERIC))
            ptx_refuse(p, t, "32-bit register as a 64-bit address");
    }
    while (ptx_accept(p, '+'))
        *offset = (int64_t)((uint64_t)*offset + ptx_number(p, 64));
    ptx_expect(p, ']');
    *mask = ptx_width_mask(bits);
    return slot;
}

void ptx_set_width(struct insn *in, int bits, int result_bits)
{
    in->bits = (uint8_t)bits;
    in->sh = (uint8_t)(64 - bits);
    in->mask = ptx_width_mask(result_bits);
}

void ptx_add_destination(struct insn *in, int slot) { in->dst[in->n_dst++] = slot; }
