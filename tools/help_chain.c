/* help_chain.c: `xt help chain`: the language of chains, and the words of a plan, on one page. */
#include <stdio.h>

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
    "  permute transpose swapaxes movedim T mT         reshape flatten unflatten squeeze unsqueeze\n"
    "  flip fliplr flipud rot90 roll                   expand broadcast_to tile repeat repeat_interleave\n"
    "  [1:5, ::-2, 3, -1, ..., None] narrow select     diagonal unfold tril triu pad\n"
    "  rearrange                                       pixel_shuffle pixel_unshuffle\n"
    "  space_to_depth depth_to_space                   contiguous clone copy: mean nothing here\n"
    "Of several inputs: concat(axis, x, y, ..) stack(axis, x, y, ..) hstack vstack dstack\n"
    "They mean what they mean in NumPy and PyTorch, whose other names are understood, too.\n"
    "\n"
    "dtypes: bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 f8e4m3 f8e5m2 c64 c128, and NumPy's and\n"
    "PyTorch's names (float32, half, <f4, ..; int, long and float have C's widths).\n"
    "\n"
    "What `xt explain` prints of a plan:\n"
    "  piece         a part of the result that comes from one input, or from a fill, by one formula\n"
    "  map           affine: strides alone; general: divisions or conditions, too\n"
    "  strategy      the kind of kernel; family, on CUDA\n"
    "  program       what is run: loops around a leaf, the kernel; shared: by threads; n/b: in blocks of b;\n"
    "                aligned: blocks begin on a line of memory; stage: by way of a buffer in the cache\n"
    "  leaf op.W     the kernel op for units of W bytes, its two innermost dims; stream: stores past the\n"
    "                cache\n"
    "  choice        the model's, or measured (XT_MEASURE=1)\n"
    "  estimate      by a model of this processor; in lines of 64 bytes, which counts whole ones\n"
    "  signature     names the kernel in the cache; (built in), (disk), (pack), (built): where it came from\n"
    "  tier          CUDA: any runs every chain, structure takes its numbers as parameters, exact has them\n"
    "                inside\n"
    "  sectors       CUDA: 32 bytes, the least that its memory moves\n";

int print_help_chain(void) { return fputs(text, stdout) < 0; }
