/* help_chain.c: `xt help chain`: the language of chains, and the words of a plan, on one page. */
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char text[] =
    "A chain: inputs, a ';', then an expression: what you would type in Python.\n"
    "\n"
    "  x: f32[4,6]; x.permute(1,0).flip(0)\n"
    "  x: u8[2,3]; y: u8[1,3]; concat(0, x, y).pad((1,1),(0,2), value=7)\n"
    "  x: f16[2,5,12]; x.rearrange(\"b s (h d) -> b h s d\", h=3)\n"
    "  x: f32[4,6]:[1,4]+0; x                          strides and offset of an input, in elements\n"
    "  x: f16[8,64]; x.unsqueeze(1).expand(8,4,64) -> [8,4,64]:[512,64,1]+128\n"
    "                                                  where the result goes: shape, strides, offset\n"
    "  x; x.T                                          xt run: shape and dtype come from the file\n"
    "\n"
    "Operations, of an input or of what came before:\n"
    "  permute(axis, ..) transpose(axis0, axis1) swapaxes(axis0, axis1) movedim(source, destination) T mT\n"
    "  reshape(n, ..) flatten() unflatten(axis, (n, ..)) squeeze(axis) unsqueeze(axis)\n"
    "  flip(axis, ..) fliplr() flipud() rot90(k, axes) roll(shift, axis)\n"
    "  expand(n, ..) broadcast_to(n, ..) tile(n, ..) repeat(n, axis=..) repeat_interleave(n, axis)\n"
    "  [1:5, ::-2, 3, -1, ..., None] narrow(axis, start, length) select(axis, index)\n"
    "  diagonal(offset, axis1, axis2) unfold(axis, size, step) tril(k, value=..) triu(k, value=..)\n"
    "  pad((before,after), .., value=..) rearrange(\"a (b c) -> b a c\", b=4)\n"
    "  pixel_shuffle(n) pixel_unshuffle(n) space_to_depth(n) depth_to_space(n)\n"
    "  contiguous() clone() copy(): mean nothing here\n"
    "Of several inputs: concat(axis, x, y, ..) stack(axis, x, y, ..) hstack vstack dstack\n"
    "They mean what they mean in NumPy and PyTorch, whose other names are understood, too.\n"
    "\n"
    "dtypes: bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 f8e4m3 f8e5m2 c64 c128, and NumPy's and\n"
    "PyTorch's names (float32, half, <f4, ..; int, long and float have C's widths).\n"
    "\n"
    "What `xt explain` prints of a plan:\n"
    "  piece         a part of the result that comes from one input, or from a fill, by one formula\n"
    "  map           affine: strides say each piece; general: divisions or conditions, too; memcpy: one "
    "run;\n"
    "                fill: nothing is read\n"
    "  dst, src0     the result and the first input as rows of elements: which element goes where\n"
    "  strategy      the way, named as below; family, on CUDA\n"
    "  program       what is run: loops around a leaf, the kernel; seq: one step after the other; merge: "
    "line by\n"
    "                line of the result; over the first step: when that is done; shared: by threads; n/b: "
    "in\n"
    "                blocks of b; aligned: blocks begin on a line of memory; stage: by way of a buffer in\n"
    "                the cache, which is fetched for and flushed\n"
    "  leaf op.W     the kernel op for units of W bytes, its two innermost dims; stream: stores past the\n"
    "                cache; walk: any strides; blocks: rows of bytes\n"
    "  refused       ways that were asked before, and what each lacks. A run is what is contiguous on both\n"
    "                sides, a unit what a kernel moves at once, a dim one loop of the copy\n"
    "  choice        by estimate, or measured (XT_MEASURE=1)\n"
    "  estimate      by a model of this processor; in lines of 64 bytes, which counts whole ones\n"
    "  signature     names the kernel in the cache; (built in), (disk), (pack), (built): where it came from\n"
    "  tier          CUDA: any runs every chain, structure takes its numbers as parameters, exact has them\n"
    "                inside\n"
    "  sectors       CUDA: 32 bytes, the least that its memory moves\n"
    "\n"
    "Ways on a CPU, the most special first; the first that fits is taken:\n"
    "  memcpy one run; fill one value; mirror pixels in reverse order; braid lines of several runs each;\n"
    "  permuted small blocks, in registers; buffered blocks through a buffer; turn a transpose of pixels; "
    "rows\n"
    "  long runs; interleave planes to pixels; deinterleave pixels to planes; mosaic lines of elements from "
    "few\n"
    "  lines; reverse elements backwards; tile lines on both sides; broadcast one element along a line;\n"
    "  transpose squares, in registers; gather elements by a list; strided every n-th element; general all "
    "else\n"
    "Families on CUDA: tile a transpose; weave bytes out of step; segments rows of several parts; packed "
    "short\n"
    "  records; contiguous one run; fill; rows; broadcast; reversed; generic all else, element by element\n";

int print_help_chain(void) { return fputs(text, stdout) < 0; }

static bool in_word(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); }

bool help_chain_has(const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; n && (at = strstr(at, word)); at++)
        if ((at == text || !in_word(at[-1])) && !in_word(at[n]))
            return true;
    return false;
}
