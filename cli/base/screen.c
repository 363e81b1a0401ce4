/* The terminal's alternate screen, without cursor, echo and line mode. */
#include "cli/base/screen.h"

#include "cli/base/interrupt.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[?25h\033[?1049l";

static struct termios before;
static volatile sig_atomic_t drawn; /* the terminal must be restored */

/* Everything here is allowed in a signal handler. */
static void put_back(void)
{
    if (!drawn)
        return;
    drawn = 0;
    ssize_t n = write(STDOUT_FILENO, leave, sizeof leave - 1);
    (void)n;
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void take_over(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    drawn = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    ssize_t n = write(STDOUT_FILENO, enter, sizeof enter - 1);
    (void)n;
}

/* For signals that kill a process at once: restore the terminal, then die of the signal. */
static void end_by(int number)
{
    put_back();
    signal(number, SIG_DFL);
    raise(number);
}

static void wake(int number)
{
    (void)number;
}

int screen_begin(void)
{
    static const int ends[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGPIPE};
    const struct sigaction quit = {.sa_handler = end_by}, resized = {.sa_handler = wake};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
        return -ENOTTY;
    atexit(put_back);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &quit, NULL);
    sigaction(SIGWINCH, &resized, NULL);
    take_over();
    return 0;
}

void screen_end(void)
{
    put_back();
}

void screen_stop(void)
{
    put_back();
    raise(SIGSTOP);
    take_over();
}

struct screen_size screen_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
        return (struct screen_size){80, 24};
    return (struct screen_size){size.ws_col, size.ws_row};
}

/* Byte length of the first `columns` characters; a character may have several bytes. */
static size_t cut_line(const char *line, size_t length, unsigned columns)
{
    size_t n = 0;
    for (unsigned column = 0; n < length && (column < columns || (line[n] & 0xc0) == 0x80); n++)
        column += (line[n] & 0xc0) != 0x80;
    return n;
}

/* One write, so that no partial screen is visible; each line is cleared after its text. */
void screen_draw(const struct str *text)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct screen_size size = screen_size();
    unsigned row = 0;
    const char *at = text->data, *end = text->data + text->length;
    str_adds(&out, "\033[H");
    while (row < size.rows && at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t n = line ? (size_t)(line - at) : (size_t)(end - at);
        str_adds(&out, row++ > 0 ? "\n" : "");
        str_add(&out, at, cut_line(at, n, size.columns));
        str_adds(&out, "\033[K");
        at += n + (line != NULL);
    }
    str_adds(&out, "\033[J");
    for (size_t done = 0; !out.failed && done < out.length;) {
        ssize_t n = write(STDOUT_FILENO, out.data + done, out.length - done);
        if (n < 0)
            return; /* it is drawn again in a second */
        done += (size_t)n;
    }
}

int screen_key(int milliseconds)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char key;
    int n = interrupted ? 0 : ready_wait(&ready, 1, milliseconds);
    if (n <= 0)
        return 0;
    ssize_t got = read(STDIN_FILENO, &key, 1);
    if (got == 1)
        return key;
    return (got < 0 && errno == EINTR) || !(ready.revents & (POLLHUP | POLLERR)) ? 0 : -EIO;
}
