"""kernels.py: the table of CPU micro-kernels, and the numbers that their templates need.

A row makes one function xtk_<op>_b<esize>_<tile>_<isa>, one line of the registry, its tests and its
benchmark (tests/test_kernels.c and tests/bench_kernels.c go over the registry). What an op does is told at
XTI_CPU_OPS in runtime/plan/plan.h.
Every op has a scalar row at every width; another instruction set has a row where it is faster.

    kernels.py ISA ..       the names of the C files that gen.py writes for these sets, one a line
"""
import sys

VECTOR_BYTES = {"scalar": 0, "avx2": 32, "avx512": 64, "neon": 32}  # in the order of enum xti_isa
NARROWER = {"avx2": "scalar", "avx512": "avx2", "neon": "scalar"}  # whose rows serve where a set has none
WIDTHS = [1, 2, 4, 8, 16]
LANE = 16  # bytes: the shuffles of AVX stay inside lanes of that size
LINE = 64  # bytes of a cache line
WEAVES = {"deinterleave": [2, 3, 4, 5, 6, 7, 8], "interleave": [2, 3, 4, 5, 6, 7, 8],
          "strided": [2, 3, 4, 5, 6, 7, 8], "mirror": [3], "turn": [3]}
WIDE_MOST = 4  # of units of 16 bytes (xti_cost_weave)
MAX_PARAM = max(n for counts in WEAVES.values() for n in counts)
# square.c.j2, for tiles: end of the name and the parameters; what is done with line %d
SQUARES = [
    ("square(char *d, int64_t d_row, const char *const *p, int64_t at",
     "v_store(d + %d * d_row, "),
    ("direct(char *d, const struct tile_at *a, int64_t r, const char *const *p, int64_t at",
     "v_store(d + tile_at(a, r + %d), "),
]


def row(op, esize, isa, tile, n=0):
    rows, cols = tile
    name = f"xtk_{op}{n or ''}_b{esize}_{rows}x{cols}_{isa}"
    return {"op": op, "esize": esize, "isa": isa, "n": n, "rows": rows, "cols": cols, "name": name}


def scalar_rows():
    yield row("blocks", 1, "scalar", (1, 1))
    yield row("braid", 1, "scalar", (1, 1))
    for op in ["fill", "broadcast", "reverse", "transpose", "walk", "tile", "gather", "mosaic"]:
        yield from (row(op, b, "scalar", (1, 1)) for b in WIDTHS)
    for op, counts in WEAVES.items():
        yield from (row(op, b, "scalar", (n, 1), n) for n in counts for b in WIDTHS)


def vector_rows(isa):
    v = VECTOR_BYTES[isa]
    yield row("blocks", 1, isa, (1, v))
    if isa == "avx512":  # others cannot load parts of a vector by bytes
        yield row("braid", 1, isa, (1, v))
    for b in WIDTHS:
        yield row("fill", b, isa, (1, v // b))
        yield row("broadcast", b, isa, (1, v // b))
        yield row("reverse", b, isa, (1, v // b))
        yield row("transpose", b, isa, (LANE // b, LINE // b))
        yield row("tile", b, isa, (LINE // b, LINE // b))
        yield row("gather", b, isa, (1, v // b))
        if isa == "avx512" or b <= 4:  # others permute bytes of 16: as many units of 8 are loaded alone
            yield row("mosaic", b, isa, (1, v // b))
    for op, counts in WEAVES.items():
        if op == "turn":
            yield from (row(op, b, isa, (4 // b, v // (4 * b)), 3) for b in [1, 2, 4] if isa != "neon")
            continue
        most = 4 if isa == "neon" and op != "strided" else MAX_PARAM  # registers that vld and vst know
        yield from (row(op, b, isa, (n, v // b), n) for n in counts if n <= most for b in WIDTHS
                    if b < LANE or (n <= WIDE_MOST and isa != "neon" and op != "mirror"))


def kernels(isas):
    for isa in isas:
        yield from scalar_rows() if isa == "scalar" else vector_rows(isa)


def file_of(k):
    """The C file of a row: one a family and instruction set."""
    return "kernels_scalar" if k["isa"] == "scalar" else f"kernels_{k['isa']}_{k['op']}"


def files(isas):
    """{file: its rows}, in the table's order."""
    found = {}
    for k in kernels(isas):
        found.setdefault(file_of(k), []).append(k)
    return found


def transpose_steps(esize):
    """Registers a0.. hold k source rows a lane; log2(k) perfect shuffles leave a column of the lanes in each.
    Returns the steps (new, "lo" or "hi", old, old) and the names of the columns, in order."""
    k = LANE // esize
    names = [f"a{i}" for i in range(k)]
    steps = []
    for stage in range(k.bit_length() - 1):
        prefix = "bcde"[stage]
        new = []
        for i in range(k):
            new.append(f"{prefix}{i}")
            steps.append((new[i], "lo" if i % 2 == 0 else "hi", names[i // 2], names[i // 2 + k // 2]))
        names = new
    return steps, names


def shuffled(esize, load, store, kind="vec"):
    """C that loads registers, as many as units of `esize` bytes in a lane, shuffles them so that a column of
    the lanes is in each, and stores these. In the text of a load @0 is the register's number and @1 to @3
    that of what lies one to three lanes of columns behind it; of a store @0 is the row and @x the register.
    Both may be several statements."""
    k = LANE // esize
    steps, columns = transpose_steps(esize)
    lines = []
    for i in range(k):
        text = load
        for lane in range(4):
            text = text.replace(f"@{lane}", str(i + lane * k))
        lines.append(f"{kind} a{i} = {text};")
    shuffle = "vq"[kind == "quad"]
    lines += [f"{kind} {new} = {shuffle}_{half}_{esize}({x}, {y});" for new, half, x, y in steps]
    lines += [store.replace("@0", str(i)).replace("@x", c) + ";" for i, c in enumerate(columns)]
    return "\n".join("    " + line for line in lines)


def weave_source(op, n, elems, out, i):
    """(input, position) of element i of output vector `out`, all vectors of `elems` elements."""
    if op == "interleave":
        flat = elems * out + i
        return flat % n, flat // n
    if op == "mirror":
        flat = elems * out + i
        flat = (elems - 1 - flat // n) * n + flat % n
        return flat // elems, flat % elems
    flat = n * i + out
    return flat // elems, flat % elems


def weave_chains(op, n, esize):
    """AVX-512: for each output the indices of a chain t = perm2(x0, i1, x1), t = perm2(t, i2, x2), ..: of
    units, or of their halves when these have 16 bytes."""
    halves = max(esize // 8, 1)
    elems = 64 // esize * halves
    tables = []
    for out in range(1 if op == "strided" else n):
        chain = []
        for step in range(1, n):
            index = []
            for i in range(elems):
                x, at = weave_source(op, n, elems // halves, out, i // halves)
                at = at * halves + i % halves
                if x == step:
                    index.append(elems + at)
                else:
                    # out of t: placed already, or junk that a later step replaces
                    index.append(at if x == 0 and step == 1 else i)
            chain.append(index)
        tables.append(chain)
    return tables


def weave_merges(op, n, esize):
    """AVX-512: for each output and input the indices of a permutation, and 64 bytes: -1 where the elements
    come from there."""
    elems = 64 // esize
    places = [[weave_source(op, n, elems, out, i) for i in range(elems)]
              for out in range(1 if op == "strided" else n)]
    tables = [[[at for _, at in row] for _ in range(n)] for row in places]
    masks = [[[-(row[i // esize][0] == x) for i in range(64)] for x in range(n)] for row in places]
    return tables, masks


def weave_indices(op, n, esize):
    """(indices, None) of chains, or (indices, masks) of merges: a permutation of two vectors of bytes or
    words is three steps where that of one is one. (5 and 8 planes of u8 to pixels and back: 1.5 and 1.7 times
    as fast in the second cache of an Emerald Rapids; 3 planes: 2 % slower)"""
    if esize < 4 and n > 3:
        return weave_merges(op, n, esize)
    return weave_chains(op, n, esize), None


def weave_masks(op, n, esize):
    """AVX2: for each output and input the 16 selectors of a vpshufb (0x80: zero), alike in both lanes."""
    elems = LANE // esize
    tables = []
    for out in range(1 if op == "strided" else n):
        masks = [[0x80] * LANE for _ in range(n)]
        for i in range(elems):
            x, at = weave_source(op, n, elems, out, i)
            for byte in range(esize):
                masks[x][i * esize + byte] = at * esize + byte
        tables.append(masks)
    return tables


def turn_selectors(n, esize, isa):
    """What moves groups of n elements, 12 bytes a lane, as units of a third more: (spread, close). spread:
    for lanes that begin with the groups, and 4 bytes before them, the selectors of a vpshufb; close: those of
    the inverse (AVX-512: the indices of a vpermb, 48 bytes that follow each other)."""
    group, unit = n * esize, LANE // 4 * esize
    spread = [[skip + i // unit * group + i % unit if i % unit < group else 0x80 for i in range(LANE)]
              for skip in (0, 4)]
    size, unused = (64, 0) if isa == "avx512" else (LANE, 0x80)
    close = [i // group * unit + i % group if i < size // 4 * 3 else unused for i in range(size)]
    return spread, close


if __name__ == "__main__":
    print("\n".join(files(sys.argv[1:])))
