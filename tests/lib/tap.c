/* TAP for tests in C. Lines go to stdout, buffered by line, so that what came before a crash is seen.
 *
 * Threads: checks may come from any thread; `lock` guards the counters and keeps the lines of a check together. */
#include "tests/lib/tap.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int planned = -1, ran, failed; /* by lock */

static char directory[PATH_MAX - 512]; /* by lock */
static pid_t directory_owner;          /* by lock; 0: not made yet */

static time_t start; /* when the program began, for one that runs without a deadline */

__attribute__((constructor)) static void tap_start(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    start = time(NULL);
}

int test_patience(void)
{
    const char *deadline = getenv("TEST_DEADLINE");
    time_t left = (deadline ? strtol(deadline, NULL, 10) : start + 300) - time(NULL);
    return left > 0 ? (int)left * 1000 : 1;
}

void plan(int tests)
{
    pthread_mutex_lock(&lock);
    planned = tests;
    printf("1..%d\n", tests);
    pthread_mutex_unlock(&lock);
}

/* A description must stay one line, and a # in it must not begin a directive. */
static void print_description(const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    for (const char *p = text; *p; p++) {
        if (*p == '#')
            putchar('\\');
        putchar(*p == '\n' ? ' ' : *p);
    }
    putchar('\n');
}

/* Prints the result's line, and where it failed; the caller holds the lock. */
static void print_result(bool condition, const char *file, int line, const char *format, va_list args)
{
    printf("%sok %d - ", condition ? "" : "not ", ++ran);
    print_description(format, args);
    if (condition)
        return;
    failed++;
    printf("#   at %s:%d\n", file, line);
}

bool tap_ok(bool condition, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    print_result(condition, file, line, format, args);
    pthread_mutex_unlock(&lock);
    va_end(args);
    return condition;
}

bool tap_is_int(intmax_t got, intmax_t expected, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    print_result(got == expected, file, line, format, args);
    if (got != expected)
        printf("#   got %jd, expected %jd\n", got, expected);
    pthread_mutex_unlock(&lock);
    va_end(args);
    return got == expected;
}

bool tap_is_uint(uintmax_t got, uintmax_t expected, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    print_result(got == expected, file, line, format, args);
    if (got != expected)
        printf("#   got %ju (0x%jx), expected %ju (0x%jx)\n", got, got, expected, expected);
    pthread_mutex_unlock(&lock);
    va_end(args);
    return got == expected;
}

static void print_text(const char *label, const char *text)
{
    printf("#   %s ", label);
    if (!text) {
        printf("NULL\n");
        return;
    }
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c >= 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    printf("\"\n");
}

bool tap_is_str(const char *got, const char *expected, const char *file, int line, const char *format, ...)
{
    bool same = got && expected ? strcmp(got, expected) == 0 : got == expected;
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    print_result(same, file, line, format, args);
    if (!same) {
        print_text("got     ", got);
        print_text("expected", expected);
    }
    pthread_mutex_unlock(&lock);
    va_end(args);
    return same;
}

static void print_bytes(const char *label, const unsigned char *bytes, size_t n)
{
    printf("#   %s", label);
    for (size_t i = 0; i < n && i < 16; i++)
        printf(" %02x", bytes[i]);
    printf("\n");
}

bool tap_is_mem(const void *got, const void *expected, size_t n, const char *file, int line, const char *format, ...)
{
    const unsigned char *g = got, *e = expected;
    size_t at = 0;
    if (n > 0 && (!g || !e))
        at = g == e ? n : 0;
    else
        while (at < n && g[at] == e[at])
            at++;
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    print_result(at == n, file, line, format, args);
    if (at < n) {
        printf("#   %zu bytes differ first at %zu%s\n", n, at, g && e ? "" : " (NULL)");
        if (g && e) {
            print_bytes("got     ", g + at, n - at);
            print_bytes("expected", e + at, n - at);
        }
    }
    pthread_mutex_unlock(&lock);
    va_end(args);
    return at == n;
}

void skip(int tests, const char *why, ...)
{
    char text[512];
    va_list args;
    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < tests; i++)
        printf("ok %d # SKIP %s\n", ++ran, text);
    pthread_mutex_unlock(&lock);
}

void plan_skip_all(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("1..0 # SKIP ");
    print_description(format, args);
    va_end(args);
    exit(0);
}

void diag(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    printf("# ");
    for (const char *p = text; *p; p++)
        if (*p == '\n' && p[1])
            printf("\n# ");
        else if (*p != '\n')
            putchar(*p);
    printf("\n");
    pthread_mutex_unlock(&lock);
}

void bail_out(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("Bail out! ");
    print_description(format, args);
    va_end(args);
    exit(99);
}

int done_testing(void)
{
    pthread_mutex_lock(&lock);
    if (planned < 0)
        printf("1..%d\n", planned = ran);
    if (planned != ran)
        printf("# %d tests were planned and %d ran\n", planned, ran);
    if (failed > 0)
        printf("# %d of %d failed\n", failed, ran);
    int status = failed > 0 || planned != ran;
    pthread_mutex_unlock(&lock);
    fflush(stdout);
    return status;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    if (remove(path) && errno != ENOENT)
        printf("# cannot remove %s: %s\n", path, strerror(errno));
    return 0;
}

/* A test may have taken the right to read a directory away from its owner. */
static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_D || type == FTW_DNR)
        (void)!chmod(path, st->st_mode | 0700);
    return 0;
}

static void directory_remove(void)
{
    if (getpid() != directory_owner)
        return;
    nftw(directory, open_up, 16, FTW_PHYS | FTW_MOUNT);
    nftw(directory, remove_one, 16, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
}

/* tests/lib/run-test gives one, which it removes also when this program crashes. The caller holds the lock. */
static bool directory_make(void)
{
    const char *given = getenv("TEST_DIRECTORY"), *base = getenv("TMPDIR");
    if (given) {
        snprintf(directory, sizeof directory, "%s", given);
        unsetenv("TEST_DIRECTORY");
    } else {
        snprintf(directory, sizeof directory, "%s/dealfs-test.XXXXXX", base && *base == '/' ? base : "/tmp");
        if (!mkdtemp(directory) || chmod(directory, 0711))
            return false;
    }
    directory_owner = getpid();
    atexit(directory_remove);
    return true;
}

const char *test_directory(void)
{
    pthread_mutex_lock(&lock);
    bool made = directory_owner != 0 || directory_make();
    pthread_mutex_unlock(&lock);
    if (!made)
        bail_out("mkdtemp %s: %s", directory, strerror(errno));
    return directory;
}

const char *test_path(const char *format, ...)
{
    static char ring[16][PATH_MAX]; /* by lock */
    static unsigned next;
    char name[512];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const char *base = test_directory();
    pthread_mutex_lock(&lock);
    char *path = ring[next++ % 16];
    snprintf(path, sizeof ring[0], "%s/%s", base, name);
    pthread_mutex_unlock(&lock);
    return path;
}
