/* Scales images down: a separable filter in 16-bit integers.
 *
 * Height first, in bands of BAND rows. A row of the result is a weighted sum of rows of the source: a loop over
 * contiguous numbers, which the compiler vectorises. The band is stored transposed, so that the pixels of a column are
 * contiguous; then the same loop scales the width.
 *
 * Pixels have 7 fractional bits, weights 15 and sums 6: of each product, the upper half of 32 bits is used. That loses
 * half a bit per tap on average, with which each sum begins; for very many taps the whole product is used. Between the
 * two directions, pixels are rounded and clamped. */
#include "fs/base/cleanup.h"
#include "fs/image/image.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    LOBES = 3,
    BAND = 16,
    WEIGHT_BITS = 15,
    ONE = 1 << WEIGHT_BITS,
    PIXEL_BITS = 7,
    SUM_BITS = 6,
    LANES = 16, /* for the compiler's vectors */
    POINT = 28, /* fractional bits while weights are computed */
    SCALE_BITS = 44,
    STEPS = 512,
    TAPS_MANY = 64,
};

struct resize_filter { /* for one direction: where the taps of each result begin, and their weights */
    uint32_t taps;     /* maximum number; shorter ones end in zeros */
    uint32_t *first;
    int16_t *weight; /* `taps` elements per result */
};

static const int64_t one = INT64_C(1) << POINT;
static const int64_t pi = 843314857;

static int64_t times(int64_t a, int64_t b)
{
    return (a * b) >> POINT;
}

/* sin(pi x), 0 <= x <= 3 */
static int64_t sin_pi(int64_t x)
{
    bool negative = x / one % 2 == 1;
    int64_t part = x % one;
    int64_t z = times(pi, part <= one / 2 ? part : one - part), square = times(z, z), sum = one;
    for (int i = 12; i > 0; i -= 2)
        sum = one - times(square, sum) / (i * (i + 1));
    return negative ? -times(z, sum) : times(z, sum);
}

/* sinc(x) sinc(x/3), 0 <= x <= 3; near 0 by the first terms of its series */
static int64_t lanczos(int64_t x)
{
    int64_t square = times(times(pi, x), times(pi, x));
    if (x < one / 64)
        return one - square * 5 / 27;
    return LOBES * (sin_pi(x) * sin_pi(x / LOBES) / square);
}

/* Its values, STEPS per lobe: linear interpolation is exact to 2 in a million. */
static int32_t lanczos_table[LOBES * STEPS + 2];
static pthread_once_t lanczos_once = PTHREAD_ONCE_INIT;

static void lanczos_fill(void)
{
    for (int i = 0; i < LOBES * STEPS; i++)
        lanczos_table[i] = (int32_t)lanczos(i * one / STEPS);
}

static int64_t lanczos_between(int64_t x)
{
    const int64_t step = one / STEPS;
    const int32_t *at = lanczos_table + x / step;
    return at[0] + (at[1] - at[0]) * (x % step) / step;
}

/* The weights of result i, for scaling `in` places to `out`. Their sum is ONE. */
static void filter_fill(struct resize_filter *f, int64_t *value, uint32_t in, uint32_t out, uint32_t i)
{
    /* the centre of place j is j + 1/2; twice that, times `out`, is an integer */
    int64_t centre = (2 * (int64_t)i + 1) * in, reach = 2 * LOBES * (int64_t)in, sum = 0, rest = 0;
    int64_t first = centre < reach ? 0 : (centre - reach) / (2 * (int64_t)out);
    int16_t *weight = f->weight + (size_t)i * f->taps;
    if (first + f->taps > in)
        first = in - f->taps;
    f->first[i] = (uint32_t)first;
    int64_t x = ((2 * first + 1) * out - centre) * (one / 2) / in, step = out * one / in;
    for (uint32_t t = 0; t < f->taps; t++, x += step) {
        value[t] = llabs(x) < LOBES * one ? lanczos_between(llabs(x)) : 0;
        sum += value[t];
    }
    /* the rounding error of a weight goes into the next one */
    int64_t scale = (INT64_C(1) << (WEIGHT_BITS + SCALE_BITS)) / sum;
    for (uint32_t t = 0; t < f->taps; t++) {
        int64_t whole = (value[t] * scale + rest + (INT64_C(1) << (SCALE_BITS - 1))) >> SCALE_BITS;
        rest += value[t] * scale - whole * (INT64_C(1) << SCALE_BITS);
        weight[t] = (int16_t)(whole < ONE ? whole : ONE - 1);
    }
}

static void filter_fini(struct resize_filter *f)
{
    free(f->first);
    free(f->weight);
}

static bool filter_init(struct resize_filter *f, uint32_t in, uint32_t out)
{
    uint64_t reach = (2 * LOBES * (uint64_t)in + out - 1) / out + 1;
    f->taps = (uint32_t)(reach < in ? reach : in);
    CLEANUP_FREE int64_t *value = malloc(f->taps * sizeof *value);
    f->first = malloc(out * sizeof *f->first);
    f->weight = malloc((size_t)out * f->taps * sizeof *f->weight);
    pthread_once(&lanczos_once, lanczos_fill);
    for (uint32_t i = 0; value && f->first && f->weight && i < out; i++)
        filter_fill(f, value, in, out, i);
    return value && f->first && f->weight;
}

struct resizing {
    const struct image_pixels *from, *to;
    struct resize_filter wide, high;
    int16_t *source; /* the rows from which a band is made */
    int16_t *row;    /* as wide as the source */
    int16_t *band;   /* its columns: BAND pixels each */
    int16_t *column; /* of the result */
};

/* `n` is a constant wherever speed matters. */
static inline __attribute__((always_inline)) void sum_lanes(const int16_t *in, size_t stride, const int16_t *weight,
                                                            uint32_t taps, int16_t *restrict out, size_t n)
{
    int16_t sum[LANES];
    for (size_t i = 0; i < n; i++)
        sum[i] = (int16_t)((1 << (SUM_BITS - 1)) + taps / 2);
    for (uint32_t t = 0; t < taps; t++, in += stride) {
        int16_t w = weight[t];
        for (size_t i = 0; i < n; i++)
            sum[i] = (int16_t)(sum[i] + (int16_t)((in[i] * w) >> 16));
    }
    for (size_t i = 0; i < n; i++) {
        int16_t value = (int16_t)(sum[i] >> SUM_BITS);
        out[i] = (int16_t)((value < 0 ? 0 : value > 255 ? 255 : value) << PIXEL_BITS);
    }
}

static void sum_many(const int16_t *in, size_t stride, const int16_t *weight, uint32_t taps, int16_t *out, size_t n)
{
    const int bits = WEIGHT_BITS + PIXEL_BITS;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = 1 << (bits - 1);
        for (uint32_t t = 0; t < taps; t++)
            sum += in[i + t * stride] * weight[t];
        sum >>= bits;
        out[i] = (int16_t)((sum < 0 ? 0 : sum > 255 ? 255 : sum) << PIXEL_BITS);
    }
}

static size_t lanes_at(size_t at, size_t n)
{
    return at + LANES <= n ? at : n - LANES;
}

/* Result i of n columns: `in` is where the rows of its taps begin, `stride` apart. */
static void sum_rows(const int16_t *in, size_t stride, const struct resize_filter *f, uint32_t i, int16_t *out,
                     size_t n)
{
    const int16_t *weight = f->weight + (size_t)i * f->taps;
    if (f->taps > TAPS_MANY)
        sum_many(in, stride, weight, f->taps, out, n);
    else if (n < LANES)
        sum_lanes(in, stride, weight, f->taps, out, n);
    else
        for (size_t at = 0; at < n; at += LANES) /* the last ones overlap */
            sum_lanes(in + lanes_at(at, n), stride, weight, f->taps, out + lanes_at(at, n), LANES);
}

static uint32_t band_rows(const struct resizing *r, uint32_t y)
{
    return r->to->height - y < BAND ? r->to->height - y : BAND;
}

static size_t source_rows(const struct resizing *r, uint32_t y)
{
    return r->high.first[y + band_rows(r, y) - 1] - r->high.first[y] + r->high.taps;
}

static inline __attribute__((always_inline)) void widen_lanes(const uint8_t *in, int16_t *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int16_t)(in[i] << PIXEL_BITS);
}

static void widen(const uint8_t *in, int16_t *out, size_t n)
{
    size_t at = 0;
    for (; at + LANES <= n; at += LANES)
        widen_lanes(in + at, out + at, LANES);
    widen_lanes(in + at, out + at, n - at);
}

static void turn_in(const int16_t *row, uint32_t width, unsigned channels, int16_t *band)
{
    for (uint32_t x = 0; x < width; x++, row += channels, band += (size_t)BAND * channels)
        for (unsigned c = 0; c < channels; c++)
            band[c] = row[c];
}

static void turn_out(const int16_t *column, size_t rows, unsigned channels, uint8_t *to, size_t stride)
{
    for (size_t i = 0; i < rows; i++, column += channels, to += stride)
        for (unsigned c = 0; c < channels; c++)
            to[c] = (uint8_t)(column[c] >> PIXEL_BITS);
}

static void resize_band(struct resizing *r, uint32_t y)
{
    unsigned channels = r->from->channels;
    size_t length = (size_t)r->from->width * channels, block = (size_t)BAND * channels;
    size_t stride = (size_t)r->to->width * channels;
    uint32_t first = r->high.first[y], rows = band_rows(r, y);
    widen(r->from->data + first * length, r->source, source_rows(r, y) * length);
    for (uint32_t i = 0; i < rows; i++) {
        sum_rows(r->source + (r->high.first[y + i] - first) * length, length, &r->high, y + i, r->row, length);
        turn_in(r->row, r->from->width, channels, r->band + (size_t)i * channels);
    }
    for (uint32_t x = 0; x < r->to->width; x++) {
        sum_rows(r->band + r->wide.first[x] * block, block, &r->wide, x, r->column, block);
        turn_out(r->column, rows, channels, r->to->data + y * stride + (size_t)x * channels, stride);
    }
}

static bool resizing_init(struct resizing *r)
{
    size_t length = (size_t)r->from->width * r->from->channels, rows = 0;
    if (!filter_init(&r->wide, r->from->width, r->to->width) || !filter_init(&r->high, r->from->height, r->to->height))
        return false;
    for (uint32_t y = 0; y < r->to->height; y += BAND)
        rows = source_rows(r, y) > rows ? source_rows(r, y) : rows;
    r->source = malloc(rows * length * sizeof *r->source);
    r->row = malloc(length * sizeof *r->row);
    r->band = calloc(length, BAND * sizeof *r->band); /* the last band is not filled */
    r->column = malloc((size_t)BAND * r->from->channels * sizeof *r->column);
    return r->source && r->row && r->band && r->column;
}

static void resizing_fini(struct resizing *r)
{
    filter_fini(&r->wide);
    filter_fini(&r->high);
    free(r->source);
    free(r->row);
    free(r->band);
    free(r->column);
}

bool image_resize(const struct image_pixels *from, const struct image_pixels *to)
{
    struct resizing r = {.from = from, .to = to};
    bool good = to->width > 0 && to->height > 0 && to->width <= from->width && to->height <= from->height &&
                from->width <= IMAGE_SIDE_MOST && from->height <= IMAGE_SIDE_MOST && from->channels == to->channels;
    good = good && resizing_init(&r);
    for (uint32_t y = 0; good && y < to->height; y += BAND)
        resize_band(&r, y);
    resizing_fini(&r);
    return good;
}
