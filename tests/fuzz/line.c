/* line.c: problem lines. What parses prints, what is printed parses to the same, and is checked as a graph.
 */
#include "fuzz.h"

static char *printed(const struct xt_graph *g)
{
    size_t need, again;
    must(!xt_print(g, NULL, 0, &need));
    char *text = malloc(need);
    must(!xt_print(g, text, need, &again) && again == need && strlen(text) == need - 1);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xt_graph *g, *h;
    char *line = malloc(size + 1);
    memcpy(line, data, size);
    line[size] = 0;
    xt_status s = xt_parse(line, 0, NULL, &g);
    must(s == xt_last_error()->status && !s == !!g);
    if (!s) {
        char *once = printed(g);
        must(!xt_parse(once, 0, NULL, &h));
        char *twice = printed(h);
        must(!strcmp(once, twice));
        fuzz_graph(g);
        free(once);
        free(twice);
        xt_graph_free(h);
    }
    xt_graph_free(g);
    free(line);
    return 0;
}
