/* impl.h: what the files of the interpreter share: decoded instructions, the module, the running machine.
 * Not for users; they include ptx.h. */
#ifndef PTX_IMPL_H
#define PTX_IMPL_H

#include "ptx.h"

#include <setjmp.h>

enum { LANES = 32, MAX_VECTOR = 8, MAX_SOURCES = 12, MAX_SCOPES = 4096 };

enum space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_CONST, SPACES };

/* Generic addresses carry their space in the top byte; global ones have it 0, as buffers are below 2^56. */
#define WINDOW(space) ((space) == SPACE_GLOBAL ? 0 : (uint64_t)(0xF0 + (space)) << 56)
#define WINDOW_MASK   ((uint64_t)0xFF << 56)

/* Unwritten bytes kept between variables, so that running over the end of one does not land in the next. */
enum { GAP_BYTES = 256 };

/* Values in registers are 64-bit, zero above the register's width; predicates are 0 or 1. One switch case
 * serves all widths: `mask` cuts the result, `sh` = 64 - width sign-extends the operands. */
/* clang-format off */
enum op {
    OP_MOV, OP_ADD, OP_SUB, OP_ADD_CC, OP_ADDC, OP_ADDC_CC, OP_SUB_CC, OP_SUBC, OP_SUBC_CC,
    OP_MUL, OP_MULHI_U, OP_MULHI_S, OP_MULWIDE_S, OP_MAD, OP_MADHI_U, OP_MADHI_S, OP_MADWIDE_S,
    OP_DIV_U, OP_DIV_S, OP_REM_U, OP_REM_S, OP_MIN_U, OP_MIN_S, OP_MAX_U, OP_MAX_S, OP_ABS, OP_NEG,
    OP_AND, OP_OR, OP_XOR, OP_NOT, OP_CNOT, OP_SHL, OP_SHR_U, OP_SHR_S, OP_SHFL_WRAP, OP_SHFR_WRAP,
    OP_SHFL_CLAMP, OP_SHFR_CLAMP, OP_LOP3, OP_PRMT, OP_BFE_U, OP_BFE_S, OP_BFI, OP_BREV, OP_CLZ, OP_POPC,
    OP_BFIND_U,
    OP_BFIND_S, OP_SELP, OP_SLCT, OP_DOT, OP_CVT, OP_SETP, OP_PACK, OP_UNPACK, OP_CVTA, OP_CVTA_TO,
    OP_LAST_ALU = OP_CVTA_TO,
    OP_LD, OP_ST, OP_CP_ASYNC, OP_CP_COMMIT, OP_CP_WAIT, OP_SHUFFLE, OP_BALLOT,
    OP_BRA, OP_BRX, OP_EXIT, OP_TRAP, OP_BARRIER, OP_WARP_BARRIER
};
/* clang-format on */
enum compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };
enum combine { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR };
enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };

/* Operands are slots: >= 0 a register, < 0 the constant ~slot, NO_SLOT nothing (a sink `_`, no guard). */
enum { NO_SLOT = INT32_MAX };

struct insn {
    uint8_t op, n_src, n_dst;
    uint8_t
        sub; /* compare, shuffle kind, prmt mode character, LOP3 table, bits of one part of a vector mov */
    uint8_t combine; /* setp */
    uint8_t flip;    /* setp: the combined predicate, ballot: the vote is negated */
    uint8_t is_signed;
    uint8_t uniform; /* .uni */
    uint8_t guard_not;
    uint8_t bits, sh; /* width of the operation, 64 - bits */
    uint8_t src_sh;   /* cvt: 64 - width of the source */
    uint8_t space;
    uint8_t size, n; /* memory: bytes of one element, number of elements */
    uint32_t unused; /* of a load: elements of which no byte is used; they are left undefined */
    int line;
    int guard;
    int dst[MAX_VECTOR], src[MAX_SOURCES];
    uint64_t mask;           /* of the result */
    uint64_t address_mask;   /* 32-bit address registers wrap at 32 bits */
    int64_t offset, offset2; /* of the address; cp.async: of the destination, of the source */
    int target; /* bra: instruction index; brx: branch table index; barrier: its number; wait: groups */
};

/* clang-format off */
enum special {
    SPECIAL_TID_X, SPECIAL_TID_Y, SPECIAL_TID_Z, SPECIAL_NTID_X, SPECIAL_NTID_Y, SPECIAL_NTID_Z,
    SPECIAL_CTAID_X, SPECIAL_CTAID_Y, SPECIAL_CTAID_Z, SPECIAL_NCTAID_X, SPECIAL_NCTAID_Y, SPECIAL_NCTAID_Z,
    SPECIAL_LANEID, SPECIAL_LANEMASK_EQ, SPECIAL_LANEMASK_LT, SPECIAL_LANEMASK_LE, SPECIAL_LANEMASK_GT,
    SPECIAL_LANEMASK_GE, SPECIAL_DYNAMIC_SMEM, SPECIALS
};
/* clang-format on */
extern const char *const ptx_special_name[SPECIALS];

struct var {
    char *name;
    enum space space;
    int entry, scope; /* entry -1: module scope */
    uint64_t address; /* within its space; global: device address */
    size_t bytes, align;
    int is_dynamic;       /* extern .shared x[]: as long as the launch says */
    size_t pointer_align; /* .param .ptr .align; 0 when not given */
    int is_struct;        /* of a parameter: an array of bytes, which is how a struct is declared */
};

struct branch_table {
    char *name;
    int scope, n;
    int *target;
};

struct entry {
    char *name;
    struct insn *code;
    int n_code, cap_code;
    int n_regs;
    int special[SPECIALS]; /* register that holds it, or NO_SLOT when unused */
    int carry;             /* register of the condition code, or NO_SLOT */
    uint64_t (*constants)[LANES];
    int n_constants, cap_constants;
    struct branch_table *tables;
    int n_tables;
    int *param; /* indices into module->vars, in order */
    size_t *param_bytes;
    int n_params;
    uint32_t max_threads, required_block[3];
    size_t param_space, local_space, shared_space; /* bytes to allocate, gaps included */
    size_t shared_bytes, local_bytes;              /* without gaps */
    int shared_granule;                            /* smallest shared access: the unit of the shared shadow */
};

struct ptx_module {
    char *text;
    const char **line; /* starts of lines, [1..n_lines] */
    int n_lines;
    int target; /* 90 for sm_90 */
    struct var *vars;
    int n_vars;
    struct entry *entries;
    int n_entries;
    unsigned char *const_image, *global_image;
    size_t const_space, global_space;
};

/* Virtual device addresses: slot 0 holds the module's variables, slot i + 1 buffer i, in the middle of 2^40
 * bytes. */
#define SLOT_SHIFT      40
#define SLOT_BASE(slot) (((uint64_t)(slot) << SLOT_SHIFT) + ((uint64_t)1 << (SLOT_SHIFT - 1)))

/* alu.c: one arithmetic instruction for all lanes; writes only those in `lanes`. */
struct machine;
struct warp;
void ptx_alu(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes);

/* decode.c: one instruction from the tokens at p->at, appended to p->entry. */
struct parser;
void ptx_decode(struct parser *p);

/* ---- running ---- */
struct copy {
    uint32_t to, group, thread;
    uint8_t size, lane;
    unsigned char data[16];
}; /* a cp.async under way */

struct warp {
    uint64_t (*reg)[LANES];
    uint32_t *defined;   /* per register: which lanes hold a value */
    uint32_t (*part)[4]; /* of the other lanes: which hold a value in byte 0..3, see run_alu */
    uint32_t pc[LANES];  /* of lanes that are not active */
    uint32_t live, active, at_barrier, at_warp_barrier;
    uint32_t member[LANES]; /* mask given to bar.warp.sync */
    uint32_t now, next;     /* pc of the active lanes; smallest pc of the other running lanes */
    uint32_t first_thread;  /* linear index of lane 0 */
    uint32_t syncs;         /* full bar.warp.sync done in this block */
    uint64_t issued;
    uint32_t group[LANES]; /* cp.async groups committed */
    struct copy *copies;
    int n_copies, cap_copies;
};

struct range {
    uint64_t lo, hi;
    const struct var *var;
};

struct machine {
    const struct ptx_module *m;
    const struct entry *e;
    const struct ptx_launch *l;
    const struct ptx_sample *sample; /* never NULL */
    struct ptx_world *w;
    struct ptx_report *r;
    jmp_buf failed;
    uint32_t block[3], n_threads, n_warps;
    struct warp *warps;
    uint64_t (*reg_pool)[LANES];
    uint32_t *defined_pool, (*part_pool)[4];
    struct range *ranges[SPACES];
    int n_ranges[SPACES], last_range[SPACES];
    unsigned char *param, *shared, *local, *local_written;
    uint64_t *shared_write, *shared_read; /* shadow, one a granule: see race.c */
    uint64_t interval, block_start;       /* barrier intervals since launch; the one this block began with */
    uint64_t budget;
    uint64_t worst_shared, worst_sectors;
    char deferred[sizeof((struct ptx_report *)0)->error]; /* see ptx_defer; empty: none */
    int undefined_line;    /* where an undefined register was first read, for error messages; 0: nowhere */
    const struct insn *in; /* for error messages */
    struct warp *cur;
    unsigned char imagined[LANES][64]; /* what a lane loads from or stores to an imaginary buffer */
};

/* exec.c: the block at mc->block, from its first instruction to its last exit. */
void ptx_run_block(struct machine *mc);

/* report.c: formats the sentence and leaves ptx_run. `lane` -1: no thread to blame; mc->in NULL: no
 * instruction. */
_Noreturn void ptx_stop(struct machine *mc, enum ptx_fault fault, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Keeps an uninitialised shared read for the end of the barrier interval: if another thread writes the byte
 * before that, the fault is the race, and only ptx_stop's sentence counts. The first one is kept. */
void ptx_defer(struct machine *mc, int lane, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void ptx_stop_deferred(struct machine *mc);
/* "buffer 1 + 12" into out, for a global address. */
void ptx_name_address(const struct ptx_world *w, uint64_t address, char *out, size_t out_bytes);
/* "(1,2,3)" of a thread of the block, from its linear index, into out. Returns out. */
const char *ptx_name_thread(const struct machine *mc, uint32_t thread, char *out, size_t out_bytes);

/* memory.c */
void ptx_load_store(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes);
void ptx_copy_async(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes);
/* Completes the copies of `lanes` in all but their `pending` latest groups; uncommitted ones too if `all`. */
void ptx_copy_wait(struct machine *mc, struct warp *w, uint32_t lanes, uint32_t pending, int all);
/* The variable that holds all of [address, address + bytes) in a space, or NULL. */
const struct range *ptx_find_range(struct machine *mc, enum space space, uint64_t address, uint64_t bytes);

/* Tells the launch's watch; address and data may be NULL. */
void ptx_watch(struct machine *mc, const struct warp *w, enum ptx_seen seen, uint32_t lanes, uint32_t bytes,
               const uint64_t *address, unsigned char *const *data);

/* race.c: checks and notes a shared access; `pending` is PTX_PENDING for a cp.async that is only issued, else
 * 0. */
enum { PTX_PENDING = 0x4000 };
void ptx_note_shared(struct machine *mc, struct warp *w, int lane, uint64_t address, uint64_t bytes,
                     int store, uint32_t pending);
/* The shadow's record of an access that this lane makes now. */
uint64_t ptx_record_now(const struct machine *mc, const struct warp *w, int lane);

/* world.c */
struct world_buffer {
    unsigned char *base; /* NULL: imaginary */
    size_t bytes;
    int writable, scratch;
    uint64_t *allowed; /* bit a byte: may be written; NULL when all may */
    uint64_t *written;
};

struct ptx_world {
    int n;
    struct world_buffer *b;
    struct ptx_report total;
};
void ptx_world_add(struct ptx_world *w, const struct ptx_report *r);

/* count.c: what one request of a warp costs. `address` is read for the lanes of the mask only. */
uint32_t ptx_count_sectors(const uint64_t *address, uint32_t lanes, uint32_t bytes, uint32_t *ideal);
uint32_t ptx_count_wavefronts(const uint64_t *address, uint32_t lanes, uint32_t bytes, uint32_t *ideal);

/* The values of a slot, one a lane. */
static inline const uint64_t *slot_values(const struct machine *mc, const struct warp *w, int slot)
{
    return slot >= 0 ? w->reg[slot] : mc->e->constants[~slot];
}

/* Lowest set lane first: for (uint32_t rest = lanes; rest; rest &= rest - 1) { int l = first_lane(rest); ...
 * } */
static inline int first_lane(uint32_t lanes) { return __builtin_ctz(lanes); }

#endif
