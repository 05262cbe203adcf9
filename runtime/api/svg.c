/* svg.c: the picture of a copy as a self-contained SVG. Layer 6. */
#include "api/explain.h"

/* Any text between tags. */
static void escaped(const char *text, struct xti_str *b)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            xti_str_add(b, *text == '<' ? "&lt;" : "&amp;");
        else
            xti_str_addn(b, text, 1);
}

void xti_explain_svg(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_str chain = {0};
    xti_kernel_text(k, &chain);
    xti_str_add(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"><title>");
    escaped(chain.s ? chain.s : "", b);
    xti_str_add(b, "</title></svg>\n");
    b->failed |= chain.failed;
    xti_str_free(&chain);
}
