/* Arrays: rows of equal length without any header (`fixed`), and with that of NumPy's .npy. */
#include "fs/records/container.h"

#include "fs/base/size.h"

#include <inttypes.h>
#include <string.h>

static int add_rows(struct record_scan *s, uint64_t begin, uint64_t rows, uint64_t row)
{
    int error = scan_expect(s, rows);
    for (uint64_t i = 0; i < rows && !error; i++)
        error = scan_found(s, begin + i * row, row, NULL, 0);
    return error;
}

static int fixed_scan(struct record_scan *s)
{
    if (s->row == 0)
        return scan_broken(s, 0, "the length of a row is not known");
    if (s->size % s->row)
        return scan_broken(s, s->size - s->size % s->row,
                           "the last row is cut off: it has %" PRIu64 " of %" PRIu32 " bytes", s->size % s->row,
                           s->row);
    return add_rows(s, 0, s->size / s->row, s->row);
}

const struct container_format container_fixed = {"fixed", "fixed", NULL, fixed_scan};

/* --- .npy --- */

/* The value of a key in a header, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"; "": it has none. */
static const char *find_value(const char *header, const char *key)
{
    const char *found = strstr(header, key);
    if (!found)
        return "";
    found += strlen(key);
    return found + strspn(found, " ");
}

/* Bytes per element; 0: not a plain type. */
static uint64_t element_size(const char *descr)
{
    uint64_t size;
    if (*descr++ != '\'' || !*descr || !strchr("<>|=", *descr++) || !*descr || !strchr("biufcmMSUV?", *descr))
        return 0;
    char kind = *descr++;
    bool some = number_take(&descr, descr + strlen(descr), UINT32_MAX, &size);
    return some && (*descr == '\'' || *descr == '[') ? size * (kind == 'U' ? 4 : 1) : 0;
}

/* "(3, 4)" or "(3,)": the first number, and the product of the others. False: it is no shape with rows. */
static bool read_shape(const char *text, uint64_t *rows, uint64_t *others)
{
    const char *end = text + strlen(text);
    *others = 1;
    if (*text++ != '(')
        return false;
    for (int i = 0;; i++) {
        uint64_t number;
        text += strspn(text, " ,");
        if (*text == ')')
            return i > 0;
        if (!number_take(&text, end, UINT64_MAX, &number))
            return false;
        if (i == 0)
            *rows = number;
        else if (__builtin_mul_overflow(*others, number, others))
            return false;
    }
}

static int scan_array(struct record_scan *s, const char *header, uint64_t begin)
{
    const char *order = find_value(header, "'fortran_order':");
    uint64_t element = element_size(find_value(header, "'descr':")), rows = 0, row = 0, bytes;
    if (element == 0)
        return scan_broken(s, 0, "rows of objects or structures are not supported");
    if (!read_shape(find_value(header, "'shape':"), &rows, &row) || __builtin_mul_overflow(row, element, &row) ||
        row == 0)
        return scan_broken(s, 0, "an array without rows");
    if (strncmp(order, "False", 5) != 0 && row != element)
        return scan_broken(s, 0, "an array in Fortran's order, in which a row is not one range of bytes");
    if (__builtin_mul_overflow(rows, row, &bytes) || bytes != s->size - begin)
        return scan_broken(s, s->size,
                           "%" PRIu64 " rows of %" PRIu64 " bytes are expected, but the file has %" PRIu64
                           " bytes after its header",
                           rows, row, s->size - begin);
    return add_rows(s, begin, rows, row);
}

static bool npy_recognise(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size;
    return n >= 10 && memcmp(head, "\x93NUMPY", 6) == 0;
}

static int npy_scan(struct record_scan *s)
{
    enum { HEADER_MOST = 64 << 10, PREFIX = 12 };
    CLEANUP_STR struct str header = STR_INIT;
    const unsigned char *p = s->size >= PREFIX ? scan_look(s, 0, PREFIX) : NULL;
    if (!p)
        return s->size >= PREFIX ? s->error : scan_broken(s, 0, "the header is cut off");
    if (!npy_recognise(p, PREFIX, s->size) || p[6] < 1 || p[6] > 3)
        return scan_broken(s, 0, "not a .npy header of version 1 to 3");
    uint32_t begin = p[6] == 1 ? 10 : 12, length = p[8] | (uint32_t)p[9] << 8;
    if (p[6] > 1)
        length |= (uint32_t)p[10] << 16 | (uint32_t)p[11] << 24;
    if (length > HEADER_MOST || length > s->size - begin)
        return scan_broken(s, 8, "a header of %" PRIu32 " bytes", length);
    p = length > 0 ? scan_look(s, begin, length) : (const unsigned char *)"";
    if (!p)
        return s->error;
    str_add(&header, p, length);
    return header.failed ? str_no_memory(s->why) : scan_array(s, header.data, begin + length);
}

const struct container_format container_npy = {"npy", "fixed", npy_recognise, npy_scan};
