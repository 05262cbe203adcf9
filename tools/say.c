/* say.c: messages of the command. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xt/xt.h>

#include "bar.h"

const char *say_program = "xt", *say_name = "xt";

/* Bytes of the character at s, of UTF-8 and no control character; 0: it is none such. */
static size_t character(const char *s)
{
    const unsigned char *b = (const unsigned char *)s;
    size_t n = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf5 ? 4 : 0;
    if (n == 1)
        return b[0] >= 0x20 && b[0] != 0x7f;
    for (size_t i = 1; i < n; i++)
        if ((b[i] & 0xc0) != 0x80)
            return 0;
    return n == 2 && b[0] == 0xc2 && b[1] < 0xa0 ? 0 : n; /* C1 */
}

char *clean(char *dst, size_t size, const char *s)
{
    size_t at = 0;
    while (*s) {
        size_t n = character(s), room = n ? n : 4;
        if (at + room >= size)
            break;
        if (n)
            memcpy(dst + at, s, n);
        else
            snprintf(dst + at, size - at, "\\x%02x", (unsigned char)*s);
        at += room;
        s += n ? n : 1;
    }
    dst[at] = 0;
    return dst;
}

static int vfail(const char *path, const char *fmt, va_list ap)
{
    char line[1024], shown[4 * sizeof line], name[4 * 300];
    if (!say_name)
        return EXIT_BAD_INPUT;
    vsnprintf(line, sizeof line, fmt, ap);
    fflush(stdout);
    bar_clear();
    clean(shown, sizeof shown, line);
    if (path)
        clean(name, sizeof name, *path ? path : "''");
    fprintf(stderr, "%s: %s%s%s\n", say_name, path ? name : "", path ? ": " : "", shown);
    return EXIT_BAD_INPUT;
}

int fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int status = vfail(NULL, fmt, ap);
    va_end(ap);
    return status;
}

int fail_file(const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int status = vfail(path, fmt, ap);
    va_end(ap);
    return status;
}

int fail_last(const char *where)
{
    const struct xt_error *e = xt_last_error();
    return fail("%s: %s", where, e->status ? e->message : "failed without a reason");
}

/* ------------------------------------------------------------------------------------- the place in a chain
 */

/* Columns that a terminal takes for [s, end): one a character, also for one that is shown as '?'. */
static int width(const char *s, const char *end)
{
    int n = 0;
    for (; s < end; n++)
        s += character(s) ? character(s) : 1;
    return n;
}

static void print_line(const char *s, const char *end)
{
    while (s < end) {
        size_t n = character(s);
        if (n)
            fwrite(s, 1, n, stderr);
        else
            fputc(*s == '\t' || *s == '\r' ? ' ' : '?', stderr);
        s += n ? n : 1;
    }
}

/* And neither what was meant nor why not. */
static bool says_no_operation(const char *message)
{
    return strstr(message, "there is no operation '") && message[strlen(message) - 1] == '\'';
}

int fail_chain(const char *name, const char *chain)
{
    enum { BEFORE = 60, COLUMNS = 100 }; /* of a long line */
    int column = xt_last_error()->column, status = fail_last(name ? name : "chain");
    if (!say_name || column < 1 || (size_t)column > strlen(chain) + 1)
        return status;
    const char *place = chain + column - 1, *start = place, *end = place;
    while (start > chain && start[-1] != '\n')
        start--;
    end += strcspn(place, "\n");
    bool cut = width(start, place) > BEFORE;
    while (cut && width(start, place) > BEFORE)
        start++;
    bool cut_end = width(start, end) > COLUMNS;
    while (width(start, end) > COLUMNS)
        end--;
    fprintf(stderr, "  %s", cut ? ".." : "");
    print_line(start, end);
    fprintf(stderr, "%s\n  %*s^\n", cut_end ? ".." : "", width(start, place) + 2 * cut, "");
    if (says_no_operation(xt_last_error()->message))
        fprintf(stderr, "  `xt help chain` lists them\n");
    if (!strchr(chain, ';'))
        fprintf(stderr,
                strpbrk(chain, " \t\n")
                    ? "  a ';' ends the inputs, as in x: f32[4,6]; x.T\n"
                    : "  a chain has a ';', at which the shell ends a command: put it in single quotes\n");
    return status;
}

/* One past the string that begins at s; its end when it is not closed. */
static const char *past_string(const char *s)
{
    const char *end = strchr(s + 1, *s);
    return end ? end + 1 : s + strlen(s);
}

/* Brackets that are open at the end; comments and strings are left out. */
static int open_brackets(const char *s)
{
    int n = 0;
    while (*s) {
        n += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
        s = *s == '#' ? s + strcspn(s, "\n") : *s == '\'' || *s == '"' ? past_string(s) : s + 1;
    }
    return n;
}

int fail_cut(const char *command, const char *chain, int n, char **files)
{
    enum { SHOWN = 40 };
    size_t length = strlen(chain);
    const char *tail = length > SHOWN ? chain + length - SHOWN : chain, *dots = length > SHOWN ? ".." : "";
    const char *end = strrchr(chain, ';');
    if (end ? !end[1 + strspn(end + 1, " \t\n")] : !strpbrk(chain, " \t\n."))
        return fail("%s: the chain ends at '%s%s': put all of it in single quotes, as in %s %s 'x; x.T'",
                    command, dots, tail, say_program, command);
    for (int i = 0; i < n && open_brackets(chain) > 0; i++)
        if (strcmp(files[i], "-") && access(files[i], F_OK))
            return fail(
                "%s: the chain ends at '%s%s', inside a bracket; inside its single quotes it has double "
                "ones",
                command, dots, tail);
    return 0;
}

/* ------------------------------------------------------------------------------- the word that was meant */

/* Letters to change, add, leave out or exchange with the next; FAR or more: not near. */
enum { LONGEST = 32, FAR = 3 };

static int distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return FAR;
    for (size_t i = 0; i <= n; i++)
        for (size_t k = 0; k <= m; k++) {
            int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
            int d = !i ? (int)k : !k ? (int)i : last[k - 1] + (a[i - 1] != b[k - 1]);
            if (i && k && last[k] + 1 < d)
                d = last[k] + 1;
            if (i && k && now[k - 1] + 1 < d)
                d = now[k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && before[k - 2] + 1 < d)
                d = before[k - 2] + 1;
            now[k] = d;
        }
    return row[n % 3][m];
}

void meant_look(struct meant *m, const char *word)
{
    size_t n = strlen(m->typed);
    int d = n >= 3 && !strncmp(word, m->typed, n) ? 1 : distance(m->typed, word), nearer = *m->word
                                                                                               ? m->distance
                                                                                           : n < 6 ? 2
                                                                                                   : FAR;
    if (d < nearer) {
        snprintf(m->word, sizeof m->word, "%s", word);
        m->distance = d;
    }
}

const char *meant_text(const struct meant *m)
{
    static char text[sizeof m->word + 32];
    if (!*m->word)
        return "";
    snprintf(text, sizeof text, ": did you mean '%s'?", m->word);
    return text;
}
