/* report.c: sentences about faults: what, where in the PTX, which block and thread, which address. */
#include "impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ptx_fault_name(enum ptx_fault fault)
{
    static const char *const names[] = {"fine",
                                        "bad launch",
                                        "out of bounds",
                                        "misaligned",
                                        "forbidden access",
                                        "shared-memory race",
                                        "uninitialised read",
                                        "written twice",
                                        "not written",
                                        "divergence",
                                        "endless loop",
                                        "trap",
                                        "no memory"};
    return (size_t)fault < sizeof names / sizeof *names ? names[fault] : "unknown fault";
}

const char *ptx_name_thread(const struct machine *mc, uint32_t thread, char *out, size_t out_bytes)
{
    const uint32_t *n = mc->l->block;
    snprintf(out, out_bytes, "(%u,%u,%u)", thread % n[0], thread / n[0] % n[1], thread / n[0] / n[1]);
    return out;
}

void ptx_name_address(const struct ptx_world *w, uint64_t address, char *out, size_t out_bytes)
{
    uint64_t slot = address >> SLOT_SHIFT;
    long long off = (long long)(address - SLOT_BASE(slot));
    if (slot == 0 && address >= SLOT_BASE(0))
        snprintf(out, out_bytes, "module variables%+lld", off);
    else if (slot == 0 || slot > (uint64_t)w->n)
        snprintf(out, out_bytes, "0x%llx (no buffer)", (unsigned long long)address);
    else
        snprintf(out, out_bytes, "buffer %d%+lld (of %zu bytes)", (int)slot - 1, off, w->b[slot - 1].bytes);
}

/* The text of the line without blanks around it. */
static int trim(const struct ptx_module *m, int line, const char **text)
{
    const char *s, *end;
    if (line < 1 || line > m->n_lines) {
        *text = "";
        return 0;
    }
    s = m->line[line] + strspn(m->line[line], " \t");
    end = s + strcspn(s, "\r\n");
    while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *text = s;
    return end - s > 100 ? 100 : (int)(end - s);
}

static void describe(struct machine *mc, enum ptx_fault fault, int lane, char *to, size_t room,
                     const char *format, va_list args)
{
    size_t n = 0;
    const char *text;
    char name[48];
    n += (size_t)snprintf(to, room, "%s: ", ptx_fault_name(fault));
    vsnprintf(to + n, room - n, format, args);
    n = strlen(to);
    if (mc->e)
        n += (size_t)snprintf(to + n, room - n, "; entry %s", mc->e->name);
    if (mc->in && n < room) {
        int length = trim(mc->m, mc->in->line, &text);
        n += (size_t)snprintf(to + n, room - n, ", PTX line %d `%.*s`, block (%u,%u,%u)", mc->in->line,
                              length, text, mc->block[0], mc->block[1], mc->block[2]);
    }
    if (mc->in && lane >= 0 && n < room)
        snprintf(to + n, room - n, " thread %s",
                 ptx_name_thread(mc, mc->cur->first_thread + (uint32_t)lane, name, sizeof name));
}

_Noreturn void ptx_stop(struct machine *mc, enum ptx_fault fault, int lane, const char *format, ...)
{
    va_list args;
    mc->r->fault = fault;
    va_start(args, format);
    describe(mc, fault, lane, mc->r->error, sizeof mc->r->error, format, args);
    va_end(args);
    /* A race is the cause of the value that was missing, anything else may be its consequence. */
    if (mc->deferred[0] && fault != PTX_RACE)
        ptx_stop_deferred(mc);
    longjmp(mc->failed, 1);
}

void ptx_defer(struct machine *mc, int lane, const char *format, ...)
{
    va_list args;
    if (mc->deferred[0])
        return;
    va_start(args, format);
    describe(mc, PTX_UNINITIALISED, lane, mc->deferred, sizeof mc->deferred, format, args);
    va_end(args);
}

_Noreturn void ptx_stop_deferred(struct machine *mc)
{
    mc->r->fault = PTX_UNINITIALISED;
    memcpy(mc->r->error, mc->deferred, sizeof mc->r->error);
    longjmp(mc->failed, 1);
}
