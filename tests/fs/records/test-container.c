/* fs/records: the records of small containers of each format; what is broken is refused; damage of any kind never leads
 * outside of the container. */
#include "fs/base/crc32c.h"
#include "fs/records/tar-header.h"
#include "tests/fs/records/containers.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void finds(const struct str *c, const char *format, uint32_t row, const char *expected, const char *what)
{
    CLEANUP_STR struct str found = STR_INIT, why = STR_INIT;
    int error = containers_scan(c->data, c->length, format ? container_format_find(format) : NULL, row, &found, &why);
    is_int(error, 0, "%s (%s)", what, why.data ? why.data : "");
    is_str(found.data ? found.data : "", expected, "%s: its records", what);
}

static void refuses(const void *bytes, size_t n, const char *format, int error, const char *reason, const char *what)
{
    CLEANUP_STR struct str found = STR_INIT, why = STR_INIT;
    is_int(containers_scan(bytes, n, format ? container_format_find(format) : NULL, 3, &found, &why), error, "%s",
           what);
    ok(why.data && strstr(why.data, reason), "%s: why (%s)", what, why.data ? why.data : "nothing");
}

static void make_tar(struct str *tar)
{
    static const char pax[] = "25 path=long/name.of.png\n14 size=00513\n";
    char data[600];
    memset(data, 'd', sizeof data);
    tar_add(tar, "d.x/", '5', "", 0);
    tar_add(tar, "d.x/a.jpg", '0', data, 513);
    tar_add(tar, "d.x/a.seg.png", '\0', data, 0);
    tar_add(tar, "d.x/link.txt", '2', "", 0);
    tar_add(tar, "d.x/a.txt", '0', data, 512);
    tar_add(tar, "d.x/b", '0', data, 1);
    tar_add(tar, "d.x/.c", '0', data, 1);
    tar_add(tar, "PaxHeaders/x", 'x', pax, sizeof pax - 1);
    tar_add(tar, "short", '0', data, 513);
    tar_add(tar, "././@LongLink", 'L', "gnu/long.cls", 13);
    tar_add(tar, "cut", '7', data, 1);
}

static void test_tar(void)
{
    CLEANUP_STR struct str tar = STR_INIT;
    static const char expected[] = "512+3584 d.x/a\n4096+1024 d.x/b\n5120+1024 d.x/.c\n6144+2560 long/name\n"
                                   "8704+2048 gnu/long\n";

    make_tar(&tar);
    finds(&tar, NULL, 0, expected, "a tar without an end");
    tar_end(&tar);
    finds(&tar, NULL, 0, expected, "a tar");
    tar.data[tar.length - 1] = 'x';
    refuses(tar.data, tar.length, NULL, -EBADMSG, "offset 11775: data after the end", "data behind its end");
    tar.data[6144 + 1024] = '3';
    refuses(tar.data, tar.length, NULL, -EBADMSG, "offset 7168: the checksum", "a pax header that does not match");
    refuses(tar.data, 4096 + 600, NULL, -EBADMSG, "offset 4096: the data of a member end beyond", "data cut off");
    refuses(tar.data, 4096 + 100, NULL, -EBADMSG, "offset 4096: a header is cut off", "a header cut off");
    str_clear(&tar);
    tar_add(&tar, "pax_global_header", 'g', "13 comment=x\n", 13);
    refuses(tar.data, tar.length, NULL, -EBADMSG, "offset 0: a pax global header", "a pax global header");
}

static void test_tfrecord(void)
{
    CLEANUP_STR struct str file = STR_INIT;
    is_uint(crc32c_masked("123456789", 9), (0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8, "CRC-32C");
    tfrecord_add(&file, "", 0);
    tfrecord_add(&file, "abc", 3);
    finds(&file, NULL, 0, "0+16\n16+19\n", "TFRecord");
    refuses(file.data, file.length - 1, NULL, -EBADMSG, "offset 16: a record of 3 bytes ends beyond", "data cut off");
    refuses(file.data, 20, NULL, -EBADMSG, "offset 16: a record is cut off", "a header cut off");
    file.data[16] ^= 1;
    refuses(file.data, file.length, NULL, -EBADMSG, "offset 16: the checksum", "another length");
}

static void test_lines(void)
{
    struct str text = {.data = "{\"a\": 1}\n\n\xc3\xa4", .length = 12};
    finds(&text, NULL, 0, "0+9\n9+1\n10+2!\n", "lines, the last one without newline");
    text = (struct str){.data = "a\0b\n", .length = 4};
    refuses(text.data, text.length, NULL, -ENOTSUP, "neither tar", "bytes of no known format");
    finds(&text, "lines", 0, "0+4\n", "which can be named");
    text.length = 0;
    finds(&text, NULL, 0, "", "nothing");
}

/* Members without data, all of one record. */
static void test_many_members(void)
{
    CLEANUP_STR struct str tar = STR_INIT, found = STR_INIT, why = STR_INIT;
    char name[32];
    for (int i = 0; i < TAR_MEMBERS_MOST; i++) {
        snprintf(name, sizeof name, "key.%d", i);
        tar_add(&tar, name, '0', "", 0);
    }
    is_int(containers_scan(tar.data, tar.length, &container_tar, 0, &found, &why), 0, "as many members as allowed");
    tar_add(&tar, "key.more", '0', "", 0);
    is_int(containers_scan(tar.data, tar.length, &container_tar, 0, &found, &why), -EFBIG, "one more");
    is_str(why.data, "offset 0: the record key has more than 65536 members", "in words");
}

/* What a stream with other names could not serve (fs/records/tar-area.h). */
static void test_large_headers(void)
{
    CLEANUP_STR struct str tar = STR_INIT, long_name = STR_INIT, large = STR_INIT;
    for (int i = 0; i <= TAR_NAME_MOST; i++)
        str_adds(&long_name, "n");
    tar_add(&tar, "L", 'L', long_name.data, long_name.length);
    tar_add(&tar, "a.jpg", '0', "a", 1);
    refuses(tar.data, tar.length, "tar", -EBADMSG, "offset 0: a name of more than 8192 bytes", "a long name");
    str_clear(&tar);
    tar_add(&tar, "L", 'L', long_name.data, long_name.length - 1);
    tar_add(&tar, "a.jpg", '0', "a", 1);
    CLEANUP_STR struct str found = STR_INIT, why = STR_INIT;
    is_int(containers_scan(tar.data, tar.length, &container_tar, 0, &found, &why), 0, "the longest name");
    for (int i = 0; i < TAR_AREA_MOST / 2; i++)
        str_adds(&large, "l");
    str_clear(&tar);
    for (int i = 0; i < 2; i++)
        tar_add(&tar, "K", 'K', large.data, large.length);
    tar_add(&tar, "a.jpg", '0', "a", 1);
    refuses(tar.data, tar.length, "tar", -EBADMSG, "extension headers of more than 1048576 bytes", "large headers");
}

/* --- limits, of a container that has no end --- */

struct endless {
    bool lines; /* empty lines; else rows of an array */
    uint64_t found, gives_up_after;
};

static int read_endless(void *user, void *to, size_t n, uint64_t offset)
{
    static const char npy[] = "\x93NUMPY\1\0v\0{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627648,), }";
    const struct endless *e = user;
    memset(to, e->lines ? '\n' : 0, n);
    if (offset == 0 && !e->lines)
        memcpy(to, npy, n < sizeof npy ? n : sizeof npy);
    return 0;
}

static int count_record(void *user, const struct found_record *record)
{
    struct endless *e = user;
    (void)record;
    e->found++;
    return 0;
}

static bool gives_up(void *user)
{
    const struct endless *e = user;
    return e->found >= e->gives_up_after;
}

static int scan_endless(struct endless *e, uint64_t most, struct str *why)
{
    struct record_scan scan = {.size = UINT64_C(1) << 40,
                               .read = read_endless,
                               .found = count_record,
                               .gave_up = gives_up,
                               .user = e,
                               .most = most,
                               .why = why};
    return container_scan(&scan);
}

static void test_limits(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct endless e = {.gives_up_after = UINT64_MAX};
    is_int(scan_endless(&e, 100000, &why), -E2BIG, "an array of 1 TiB has too many records");
    is_str(why.data, "more than 100000 records: a list has at most that many", "in words");
    is_uint(e.found, 0, "which is known before the first one");
    e.lines = true;
    is_int(scan_endless(&e, 100000, &why), -E2BIG, "too many lines");
    is_uint(e.found, 100000, "no more are found than a list may have");
    for (int lines = 0; lines <= 1; lines++) {
        e = (struct endless){.lines = lines, .gives_up_after = 50000};
        is_int(scan_endless(&e, UINT64_MAX, &why), -EINTR, "a user who looks for them may give up");
        ok(e.found >= 50000 && e.found < 60000, "soon after: %" PRIu64 " records", e.found);
    }
}

static void test_arrays(void)
{
    static const struct {
        const char *header, *why;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", "offset 90: 3 rows of 8 bytes are expected"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "Fortran"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", "rows of objects or structures"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", "rows of objects or structures"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "without rows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0), }", "without rows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }", "without rows"},
    };
    char array[10 + 64 + 16] = "\x93NUMPY\1\0\100\0";
    struct str file = {.data = array, .length = sizeof array};
    strcpy(array + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }");
    finds(&file, NULL, 0, "74+8\n82+8\n", ".npy");
    strcpy(array + 10, "{'descr': '<U1', 'fortran_order': True, 'shape': (4,), }");
    finds(&file, NULL, 0, "74+4\n78+4\n82+4\n86+4\n", ".npy of one dimension");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char one[sizeof array + 32] = "\x93NUMPY\1\0\100\0";
        size_t length = strlen(bad[i].header) > 64 ? strlen(bad[i].header) : 64;
        one[8] = (char)length;
        memcpy(one + 10, bad[i].header, strlen(bad[i].header));
        refuses(one, 10 + length + 16, NULL, -EBADMSG, bad[i].why, bad[i].header);
    }
    finds(&file, "fixed", 45, "0+45\n45+45\n", "rows without a header");
    refuses(array, 8, "fixed", -EBADMSG, "offset 6: the last row is cut off: it has 2 of 3 bytes", "an odd length");
}

static void test_compressed(void)
{
    static const struct {
        const char *name, *bytes;
    } table[] = {
        {"gzip", "\x1f\x8b\x08"},
        {"zstd", "\x28\xb5\x2f\xfd"},
        {"xz", "\xfd\x37zXZ\0"},
        {"zip", "PK\x03\x04"},
        {"bzip2", "BZh9\x31\x41\x59\x26\x53\x59"},
        {"lz4", "\x04\x22\x4d\x18"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char head[16] = "";
        memcpy(head, table[i].bytes, strlen(table[i].bytes));
        refuses(head, sizeof head, i % 2 ? NULL : "tar", -ENOTSUP, table[i].name, table[i].name);
    }
}

/* 1: it was refused; 0: not; and why. */
static bool is_refused(const void *bytes, size_t n, const struct container_format *format)
{
    CLEANUP_STR struct str found = STR_INIT, why = STR_INIT;
    int error = containers_scan(bytes, n, format, 8, &found, &why);
    if (error && (!why.length || (error != -EBADMSG && error != -ENOTSUP && error != -EFBIG)))
        bail_out("%zu bytes: error %d, %s", n, error, why.data ? why.data : "no reason");
    return error != 0;
}

/* Each length, each byte with each bit changed, as what it is and as what it looks like. containers_scan aborts where
 * something outside is read or found. */
static void test_damage(const struct str *c, const char *name)
{
    const struct container_format *format = container_format_find(name);
    size_t cut = 0, changed = 0;
    for (size_t n = 0; n < c->length; n++)
        cut += is_refused(c->data, n, format);
    for (size_t i = 0; i < c->length; i++)
        for (int bit = 0; bit < 8; bit++) {
            c->data[i] ^= (char)(1 << bit);
            changed += is_refused(c->data, c->length, bit % 2 ? format : NULL);
            c->data[i] ^= (char)(1 << bit);
        }
    ok(cut > 0 && changed > 0, "%s of %zu bytes, damaged: %zu of its beginnings and %zu of its changes are refused",
       name, c->length, cut, changed);
}

static void test_damages(void)
{
    CLEANUP_STR struct str tar = STR_INIT, records = STR_INIT, array = STR_INIT;
    make_tar(&tar);
    tar_end(&tar);
    test_damage(&tar, "tar");
    tfrecord_add(&records, "abcdefgh", 8);
    tfrecord_add(&records, "ijkl", 4);
    test_damage(&records, "tfrecord");
    str_add(&array,
            "\x93NUMPY\1\0\100\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }    \n0123456789abcdef", 90);
    test_damage(&array, "npy");
}

int main(void)
{
    test_tar();
    test_tfrecord();
    test_lines();
    test_many_members();
    test_large_headers();
    test_limits();
    test_arrays();
    test_compressed();
    test_damages();
    return done_testing();
}
