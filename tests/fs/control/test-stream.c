/* The stream of `control`, driven as clients drive it: each of them is a sequence of writes and reads at offsets.
 *
 * The verb of these tests replies with the request's length and the request itself; `fail` is refused when it runs,
 * `never` by its first line, `short` takes 10 bytes after its line, `large` very many. */
#include "fs/control/stream.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LINE_MOST = 64, POOL_MOST = 4096, PAYLOAD_MOST = 1000, LARGE_MOST = 16 << 20 };

static struct str noted; /* what `refused` was told: errno, line and reason, a line each */
static struct budget pool;

static bool begins(const char *text, size_t n, const char *word)
{
    return n >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

static int64_t check(void *user, const char *line, size_t n, struct str *why)
{
    (void)user;
    if (begins(line, n, "never")) {
        str_adds(why, "never is not a verb");
        return -EINVAL;
    }
    return begins(line, n, "short") ? 10 : begins(line, n, "large") ? LARGE_MOST : PAYLOAD_MOST;
}

static void usage(void *user, struct str *text)
{
    (void)user;
    str_adds(text, "usage\n");
}

static void refused(void *user, const char *line, size_t n, int error, const char *why)
{
    (void)user;
    str_addf(&noted, "%d|", -error);
    str_add(&noted, line, n);
    str_addf(&noted, "|%s\n", why);
}

static const struct stream_rules rules = {
    .check = check,
    .usage = usage,
    .refused = refused,
    .line_most = LINE_MOST,
};

/* A client's file: a position as read(2) and write(2) move it. */
struct client {
    struct stream stream;
    uint64_t at;
};

static void client_open(struct client *c)
{
    c->at = 0;
    stream_init(&c->stream, &rules, &pool, NULL, NULL);
    str_fini(&noted);
    str_adds(&noted, "");
}

static ssize_t client_write(struct client *c, const char *text)
{
    ssize_t n = stream_write(&c->stream, text, strlen(text));
    if (n > 0)
        c->at += (size_t)n;
    return n;
}

static int run(struct client *c)
{
    struct request_text request;
    struct str text = STR_INIT;
    int error = 0;
    stream_take(&c->stream, &request);
    if (begins(request.data, request.length, "fail")) {
        error = -ERANGE;
        str_adds(&text, "it fails");
    } else {
        str_addf(&text, "%zu:", request.length);
        str_add(&text, request.data, request.length);
        str_adds(&text, "\n");
    }
    return stream_done(&c->stream, &request, error, &text, NULL);
}

/* pread(2): n or -errno; `buffer` is NUL-terminated and has room for it. */
static ssize_t client_pread(struct client *c, char *buffer, size_t n, uint64_t offset)
{
    struct stream_piece piece;
    enum stream_turn turn = stream_read(&c->stream, offset, n, &piece);
    if (turn == STREAM_RUN) {
        int error = run(c);
        if (error)
            return error;
        turn = stream_read(&c->stream, offset, n, &piece);
    }
    if (turn == STREAM_FAIL)
        return piece.error;
    if (turn != STREAM_PIECE)
        return -EPROTO;
    if (piece.n > 0)
        memcpy(buffer, piece.bytes, piece.n);
    buffer[piece.n] = '\0';
    if (piece.reply)
        reply_put(piece.reply);
    return (ssize_t)piece.n;
}

static ssize_t client_read(struct client *c, char *buffer, size_t n)
{
    ssize_t got = client_pread(c, buffer, n, c->at);
    if (got > 0)
        c->at += (size_t)got;
    return got;
}

/* Reads in pieces of n until the end, as cat does. */
static const char *client_cat(struct client *c, size_t n)
{
    static char all[65536];
    size_t length = 0;
    ssize_t got;
    while ((got = client_read(c, all + length, n)) > 0)
        length += (size_t)got;
    all[length] = '\0';
    return got < 0 ? strerrorname_np((int)-got) : all;
}

/* bash's read builtin: a block, of which it keeps a line and seeks back to behind it. */
static const char *client_line(struct client *c)
{
    static char block[256];
    uint64_t from = c->at;
    ssize_t n = client_read(c, block, 128);
    char *end = n > 0 ? memchr(block, '\n', (size_t)n) : NULL;
    if (!end)
        return n == 0 ? "(end)" : "(error)";
    *end = '\0';
    c->at = from + (size_t)(end - block) + 1;
    return block;
}

static void client_close(struct client *c)
{
    stream_fini(&c->stream);
}

static void test_shell(void)
{
    struct client c;
    client_open(&c);
    is_int(client_write(&c, "one\n"), 4, "exec 3<>control; echo one >&3");
    is_str(client_cat(&c, 4096), "4:one\n\n", "cat <&3 gives its reply");
    is_str(client_cat(&c, 4096), "", "a second cat is at the end");
    client_write(&c, "two\n");
    is_str(client_cat(&c, 3), "4:two\n\n", "the next request on the same descriptor, read in pieces");
    client_write(&c, "a\nb\nc\n");
    is_str(client_line(&c), "6:a", "read -r: the first line, and back to behind it");
    is_str(client_line(&c), "b", "the second");
    is_str(client_line(&c), "c", "the third");
    is_str(client_line(&c), "", "the fourth");
    is_str(client_line(&c), "(end)", "the end");
    client_write(&c, "a\nb\nc\n");
    is_str(client_line(&c), "6:a", "one line is read");
    client_write(&c, "next\n");
    is_str(client_cat(&c, 100), "5:next\n\n", "a write drops the rest of the reply before");
    client_close(&c);
    is_str(noted.data, "", "nothing was refused");
}

static void test_usage(void)
{
    struct client c;
    client_open(&c);
    is_str(client_cat(&c, 2), "usage\n", "a read without a request gives the usage");
    is_str(client_cat(&c, 2), "", "and its end");
    client_write(&c, "x\n");
    is_str(client_cat(&c, 100), "2:x\n\n", "a request after it works");
    client_close(&c);
}

static void test_pread(void)
{
    struct client c;
    char buffer[128];
    client_open(&c);
    client_write(&c, "one\n");
    is_int(client_pread(&c, buffer, 100, 0), 7, "pread at 0");
    is_str(buffer, "4:one\n\n", "its reply begins there");
    is_int(client_pread(&c, buffer, 2, 2), 2, "pread in the middle");
    is_str(buffer, "on", "gives that part");
    is_int(client_pread(&c, buffer, 100, 7), 0, "pread at the end");
    is_int(client_pread(&c, buffer, 100, 1 << 20), 0, "pread far behind the end");
    client_write(&c, "two\n");
    is_int(client_pread(&c, buffer, 3, 1000), 3, "the first read fixes the beginning, wherever it is");
    is_str(buffer, "4:t", "reply begins at 1000");
    client_pread(&c, buffer, 3, 1003);
    is_str(buffer, "wo\n", "and goes on from there");
    client_pread(&c, buffer, 3, 1000);
    is_str(buffer, "4:t", "a seek back to it works");
    client_pread(&c, buffer, 3, 0);
    is_str(buffer, "4:t", "a seek to 0 reads from the reply's beginning");
    client_close(&c);
}

/* Python's open(path, 'r+b'): writes are gathered and flushed, reads are of 8 KiB blocks, seek(0) is common. */
static void test_python(void)
{
    struct client c;
    char buffer[9000];
    client_open(&c);
    client_write(&c, "one");
    client_write(&c, "\nrest");
    c.at = 0;
    is_int(client_read(&c, buffer, 8192), 11, "write, seek(0), read");
    is_str(buffer, "8:one\nrest\n", "the reply");
    is_int(client_read(&c, buffer, 8192), 0, "the end");
    c.at = 0;
    client_write(&c, "again\n");
    is_str(client_cat(&c, 8192), "6:again\n\n", "a write at 0 begins a new request, and does not overwrite");
    client_close(&c);
}

static void test_pieces(void)
{
    struct client c;
    const char *request = "verb a=1 b=2\r\npayload\n";
    client_open(&c);
    for (const char *p = request; *p; p++)
        stream_write(&c.stream, p, 1);
    is_str(client_cat(&c, 1), "22:verb a=1 b=2\r\npayload\n\n", "byte by byte in, byte by byte out");
    client_write(&c, "no newline");
    is_str(client_cat(&c, 7), "10:no newline\n", "without a final newline");
    is_int(stream_write(&c.stream, "", 0), 0, "an empty write");
    is_str(client_cat(&c, 7), "", "begins no request");
    client_close(&c);
}

static void test_refused(void)
{
    struct client c;
    char buffer[128];
    client_open(&c);
    client_write(&c, "fail me\nx");
    is_int(client_read(&c, buffer, 100), -ERANGE, "a refused request makes the read fail");
    is_str(noted.data, "34|fail me|it fails\n", "it is noted");
    is_int(client_read(&c, buffer, 100), 9, "the next read");
    is_str(buffer, "it fails\n", "gives the reason");
    is_int(client_read(&c, buffer, 100), 0, "then the end");
    client_write(&c, "good\n");
    is_str(client_cat(&c, 100), "5:good\n\n", "a new request on the same handle");
    client_write(&c, "fail\n");
    is_int(client_read(&c, buffer, 100), -ERANGE, "refused again");
    client_write(&c, "good\n");
    is_str(client_cat(&c, 100), "5:good\n\n", "a write before the reason is read begins a new request too");
    client_close(&c);
}

static void test_doomed(void)
{
    struct client c;
    char buffer[128];
    client_open(&c);
    is_int(client_write(&c, "never a=b\r\n"), 11, "a first line that will be refused is taken");
    for (int i = 0; i < 1000; i++)
        client_write(&c, "payload payload payload");
    is_uint(pool.used, 0, "its payload is thrown away");
    is_int(client_read(&c, buffer, 100), -EINVAL, "the read fails");
    is_str(noted.data, "22|never a=b|never is not a verb\n", "noted without its line end");
    is_int(client_read(&c, buffer, 100), 20, "then the reason");
    is_str(buffer, "never is not a verb\n", "in words");
    client_close(&c);

    client_open(&c);
    client_write(&c, "never\n");
    client_close(&c);
    is_str(noted.data, "22|never|never is not a verb\n", "noted also when it is closed unread");
}

static void test_long(void)
{
    struct client c;
    char buffer[128], many[LINE_MOST + 2] = "";
    client_open(&c);
    is_int(client_write(&c, "short\n0123456789"), 16, "as much as the verb takes");
    is_str(client_cat(&c, 100), "16:short\n0123456789\n", "runs");
    is_int(client_write(&c, "short\n0123456789"), 16, "again");
    is_int(client_write(&c, "x"), -EFBIG, "one byte more is refused");
    is_int(client_write(&c, "good\n"), -EFBIG, "what follows is not taken for a new request");
    is_uint(pool.used, 0, "it holds no memory");
    is_int(client_read(&c, buffer, 100), -EFBIG, "nor is there a reply for who did not look");
    ok(client_read(&c, buffer, 100) > 0, "the reason");
    is_str(buffer, "more than 10 bytes after the first line\n", "in words");
    is_int(client_write(&c, "short\n01234567890"), -EFBIG, "in one write");
    client_close(&c);

    client_open(&c);
    memset(many, 'v', sizeof many - 1);
    is_int(client_write(&c, many), -E2BIG, "a first line that is too long");
    is_int(client_read(&c, buffer, 100), -E2BIG, "fails");
    is_int(client_read(&c, buffer, 100) > 0, 1, "with a reason");
    many[LINE_MOST - 1] = '\n', many[LINE_MOST] = '\0';
    is_int(client_write(&c, many), LINE_MOST, "the longest one is taken");
    is_int(client_read(&c, buffer, 100) > 0, 1, "and runs");
    client_close(&c);
}

static void test_pool(void)
{
    struct client c[6];
    char kilobyte[1000];
    ssize_t n = 0;
    int i;
    memset(kilobyte, 'x', sizeof kilobyte);
    for (i = 0; i < 6; i++)
        client_open(&c[i]);
    for (i = 0; i < 6; i++) {
        client_write(&c[i], "v\n");
        n = stream_write(&c[i].stream, kilobyte, sizeof kilobyte);
        if (n < 0)
            break;
    }
    is_int(i, 4, "four requests of a kilobyte fit into the pool");
    is_int(n, -ENOMEM, "the fifth does not");
    client_cat(&c[0], 100);
    is_int(client_write(&c[5], "v\n"), 2, "a reply that was made frees its request");
    is_int(stream_write(&c[5].stream, kilobyte, sizeof kilobyte), 1000, "whose room another has");
    for (i = 0; i < 6; i++)
        client_close(&c[i]);
    is_uint(pool.used, 0, "all of it comes back");
}

static void test_closed(void)
{
    struct client c;
    client_open(&c);
    client_write(&c, "where a=b\nx");
    client_close(&c);
    ok(noted.length > 0 && strncmp(noted.data, "125|where a=b|closed", 20) == 0, "closed unread is noted: %s",
       noted.data);
    client_open(&c);
    client_write(&c, "x\n");
    client_cat(&c, 100);
    client_close(&c);
    is_str(noted.data, "", "closed after its reply is not");
    client_open(&c);
    client_close(&c);
    is_str(noted.data, "", "nor is an open and close");
}

static void test_two_threads(void)
{
    struct client c;
    struct stream_piece piece;
    struct request_text request;
    struct str text = STR_INIT;
    client_open(&c);
    client_write(&c, "one\n");
    is_int(stream_read(&c.stream, 4, 100, &piece), STREAM_RUN, "the first read runs the request");
    is_int(stream_read(&c.stream, 6, 100, &piece), STREAM_WAIT, "the second waits");
    is_int(stream_write(&c.stream, "x", 1), -EBUSY, "a write is refused");
    stream_take(&c.stream, &request);
    is_int(stream_write(&c.stream, "x", 1), -EBUSY, "also while it runs");
    str_adds(&text, "reply");
    is_int(stream_done(&c.stream, &request, 0, &text, NULL), 0, "done");
    is_int(stream_read(&c.stream, 4, 2, &piece), STREAM_PIECE, "the first reads");
    is_mem(piece.bytes, "re", 2, "from the beginning");
    is_int(stream_write(&c.stream, "next\n", 5), 5, "a write drops the reply");
    is_mem(piece.bytes, "re", 2, "but not from under who reads it");
    reply_put(piece.reply);
    client_close(&c);
}

static void test_interrupted(void)
{
    struct client c;
    struct stream_piece piece;
    struct request_text request;
    client_open(&c);
    client_write(&c, "one\n");
    is_int(stream_read(&c.stream, 4, 100, &piece), STREAM_RUN, "run");
    stream_take(&c.stream, &request);
    stream_retry(&c.stream, &request);
    is_str(client_cat(&c, 100), "4:one\n\n", "a read that is repeated after EINTR gets the reply");
    is_uint(pool.used, 0, "the pool is in order");
    client_close(&c);
    is_str(noted.data, "", "nothing was refused");
}

/* In pieces of an odd length, up to `bytes`. Sets the last write's error. */
static size_t write_large(struct client *c, size_t bytes, int *error)
{
    char piece[70001];
    size_t done = 0;
    client_write(c, "large\n");
    for (ssize_t n = 1; done < bytes && n > 0; done += n > 0 ? (size_t)n : 0) {
        for (size_t i = 0; i < sizeof piece; i++)
            piece[i] = (char)((done + i) % 251);
        n = stream_write(&c->stream, piece, bytes - done < sizeof piece ? bytes - done : sizeof piece);
        *error = n < 0 ? (int)n : 0;
    }
    return done;
}

static bool is_large(const char *text, size_t n)
{
    bool good = begins(text, n, "large\n") && text[n] == '\0';
    for (size_t i = 6; i < n && good; i++)
        good = text[i] == (char)((i - 6) % 251);
    return good;
}

/* Large requests are in files. One that finds no room there is refused, and holds nothing. */
static void test_large(void)
{
    static const size_t sizes[] = {(1 << 20) - 6, (1 << 20) - 5, (2 << 20) - 6, (4 << 20) - 7, 9999999, LARGE_MOST};
    struct client c;
    struct stream_piece piece;
    struct request_text request;
    struct rlimit all, little;
    int error;
    budget_resize(&pool, 2 * LARGE_MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        client_open(&c);
        bool whole = write_large(&c, sizes[i], &error) == sizes[i] && !error;
        is_int(stream_read(&c.stream, 0, 100, &piece), STREAM_RUN, "%zu bytes", sizes[i]);
        stream_take(&c.stream, &request);
        ok(whole && request.length == sizes[i] + 6 && is_large(request.data, request.length), "as they were written");
        is_int(request.small.length > 0, sizes[i] + 6 <= 1 << 20, "allocated up to 1 MiB only");
        stream_retry(&c.stream, &request);
        ok(!request.data && c.stream.request.length == sizes[i] + 6, "and again, where the read was interrupted");
        client_close(&c);
    }
    getrlimit(RLIMIT_FSIZE, &all);
    little = (struct rlimit){5 << 20, all.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    client_open(&c);
    setrlimit(RLIMIT_FSIZE, &little);
    ok(write_large(&c, LARGE_MOST, &error) < 5 << 20, "where there is no room for more");
    setrlimit(RLIMIT_FSIZE, &all);
    is_int(error, -EFBIG, "the write fails");
    ok(!c.stream.request.file.bytes && pool.used == 0, "and nothing is held");
    client_close(&c);
    ok(strncmp(noted.data, "27|large|no room for a request longer", 37) == 0, "it is noted: %s", noted.data);
    budget_resize(&pool, POOL_MOST);
}

/* Any order of operations: the pool comes back, and a reply is always one of the last complete request. */
static void test_any_order(void)
{
    static const char *const texts[] = {"a", "v\n", "never\n", "fail\n", "\n", "short\n", "0123456789ab"};
    unsigned seed = 1;
    bool good = true;
    for (int round = 0; round < 2000; round++) {
        struct client c;
        char buffer[5000];
        client_open(&c);
        for (int step = 0; step < 30; step++) {
            int what = rand_r(&seed) % 10;
            if (what < 6)
                client_write(&c, texts[what]);
            else if (what < 8)
                client_read(&c, buffer, 1 + (size_t)rand_r(&seed) % 4000);
            else
                client_pread(&c, buffer, 100, (uint64_t)rand_r(&seed) % 100);
        }
        client_close(&c);
        good = good && pool.used == 0;
    }
    ok(good, "after any order of operations nothing is held");
}

int main(void)
{
    budget_init(&pool, POOL_MOST, NULL, NULL);
    test_shell();
    test_usage();
    test_pread();
    test_python();
    test_pieces();
    test_refused();
    test_doomed();
    test_long();
    test_pool();
    test_closed();
    test_two_threads();
    test_interrupted();
    test_large();
    test_any_order();
    str_fini(&noted);
    return done_testing();
}
