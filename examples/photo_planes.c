/* photo_planes.c: a photo from a file, pixels [height, width, 3] of bytes (PPM, "P6"), becomes planes [3,
 * height, width], what a network reads: here a grey picture (PGM, "P5") of the planes below each other.
 *
 *     photo_planes photo.ppm planes.pgm */
#include <stdio.h>
#include <stdlib.h>
#include <xt/xt.h>

/* The pixels, for the caller to free; NULL: this is no such file. */
static unsigned char *read_photo(const char *file, long *height, long *width)
{
    unsigned char *pixels = NULL;
    FILE *f = fopen(file, "rb");
    if (f && fscanf(f, "P6 %ld %ld 255%*1[ \n]", width, height) == 2 && *width > 0 && *height > 0 &&
        *width < 1 << 20 && *height < 1 << 20) {
        size_t bytes = (size_t)*height * (size_t)*width * 3;
        if ((pixels = malloc(bytes)) && fread(pixels, 1, bytes, f) != bytes)
            free(pixels), pixels = NULL;
    }
    if (f)
        fclose(f);
    return pixels;
}

static int write_planes(const char *file, const unsigned char *planes, long height, long width)
{
    size_t bytes = (size_t)height * (size_t)width * 3;
    FILE *f = fopen(file, "wb");
    if (!f)
        return 0;
    fprintf(f, "P5\n%ld %ld\n255\n", width, 3 * height);
    size_t written = fwrite(planes, 1, bytes, f);
    return fclose(f) == 0 && written == bytes;
}

int main(int argc, char **argv)
{
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    long height, width;
    unsigned char *pixels = argc == 3 ? read_photo(argv[1], &height, &width) : NULL;
    if (!pixels) {
        fprintf(stderr, "want: photo_planes PHOTO.ppm PLANES.pgm, a photo of bytes (P6)\n");
        return 1;
    }
    struct xt_shape photo = {XT_U8, 3, {height, width, 3}}; /* of the file: the chain leaves it open */
    unsigned char *planes = malloc((size_t)height * (size_t)width * 3);
    if (!planes || xt_ctx_new(NULL, &ctx) || xt_parse("photo; photo.permute(2,0,1)", 1, &photo, &g) ||
        xt_compile(ctx, g, NULL, &k) || xt_run(k, planes, (const void *[]){pixels}, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message);
        return 1;
    }
    if (!write_planes(argv[2], planes, height, width)) {
        perror(argv[2]);
        return 1;
    }
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    free(planes);
    free(pixels);
    return 0;
}
