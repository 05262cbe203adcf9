/* ops.c: the table of operations: one row each, in the order of enum xt_op. Layer 1. */
#include "graph/graph.h"

#include "graph/dtype.h"

/* clang-format off */
static const struct xti_op_info table[] = {
    [XT_OP_INPUT]     = {"input",     ""},
    [XT_OP_PERMUTE]   = {"permute",   "permute_dims"},
    [XT_OP_RESHAPE]   = {"reshape",   "view"},
    [XT_OP_SQUEEZE]   = {"squeeze",   ""},
    [XT_OP_UNSQUEEZE] = {"unsqueeze", "expand_dims"},
    [XT_OP_INDEX]     = {"index",     ""},
    [XT_OP_FLIP]      = {"flip",      ""},
    [XT_OP_EXPAND]    = {"expand",    "broadcast_to"},
    [XT_OP_TILE]      = {"tile",      ""},
    [XT_OP_REPEAT]    = {"repeat",    "repeat_interleave"},
    [XT_OP_ROLL]      = {"roll",      ""},
    [XT_OP_DIAGONAL]  = {"diagonal",  ""},
    [XT_OP_UNFOLD]    = {"unfold",    ""},
    [XT_OP_PAD]       = {"pad",       ""},
    [XT_OP_TRIL]      = {"tril",      ""},
    [XT_OP_TRIU]      = {"triu",      ""},
    [XT_OP_CONCAT]    = {"concat",    "concatenate cat"},
    [XT_OP_STACK]     = {"stack",     ""},
};
/* clang-format on */

/* Names of the language that stand for several operations or for a value. */
static const char reserved[] = "transpose swapaxes moveaxis movedim flatten ravel rearrange None newaxis "
                               "True False true false nan inf bits";

enum { N_ROWS = sizeof table / sizeof *table };

const struct xti_op_info *xti_op_info(enum xt_op op) { return &table[op]; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool xti_name_ok(const char *s, size_t n)
{
    if (!n || n > 2 * XTI_MAX_NAME || !is_letter(s[0]) || xti_word_in(reserved, s, n))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!is_letter(s[i]) && !(s[i] >= '0' && s[i] <= '9'))
            return false;
    /* "input" and "index" are not callable: they stay free. */
    for (int i = 0; i < N_ROWS; i++)
        if (i != XT_OP_INPUT && i != XT_OP_INDEX &&
            (xti_word_in(table[i].name, s, n) || xti_word_in(table[i].aliases, s, n)))
            return false;
    return true;
}
