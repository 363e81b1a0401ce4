/* The progress of long work, for people.
 *
 * The rate is an exponential average over the last seconds: so the remaining time follows a source that becomes slow,
 * and does not jump with every file. */
#include "cli/base/progress.h"

#include "fs/base/clock.h"
#include "fs/base/size.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH_DEFAULT = 80,
    BAR_MIN = 8,
    BAR_MAX = 40,
};

static const double SMOOTHING = 4.0; /* seconds */

void progress_begin(struct progress_bar *p, const char *label, FILE *to)
{
    memset(p, 0, sizeof *p);
    p->label = label;
    p->to = to;
    p->terminal = isatty(fileno(to)) == 1;
    p->marked = clock_now();
    p->shown = p->terminal ? 0 : p->marked;
}

char *count_format(uint64_t number, char *buffer, size_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t at = 0;
    for (int i = 0; i < length && at + 2 < n; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            buffer[at++] = ',';
        buffer[at++] = digits[i];
    }
    buffer[at] = '\0';
    return buffer;
}

void progress_add_bar(struct str *s, double share, int width)
{
    int full = share <= 0 ? 0 : share >= 1 ? width : (int)(share * width);
    str_add(s, "[", 1);
    for (int i = 0; i < width; i++)
        str_add(s, i < full ? "#" : ".", 1);
    str_add(s, "]", 1);
}

/* What is counted: bytes; or files if bytes are unknown. */
static bool by_bytes(const struct progress_now *now)
{
    return now->bytes_total > 0 || (now->files_total == 0 && now->bytes > 0);
}

static double amount_done(const struct progress_now *now)
{
    return by_bytes(now) ? (double)now->bytes : (double)now->files;
}

static double amount_total(const struct progress_now *now)
{
    return by_bytes(now) ? (double)now->bytes_total : (double)now->files_total;
}

void progress_measure(struct progress_bar *p, const struct progress_now *now, uint64_t time)
{
    if (time < p->marked + SECOND / 20)
        return;
    double seconds = (double)(time - p->marked) / 1e9;
    double current = fmax(0, amount_done(now) - amount_done(&p->mark)) / seconds;
    double weight = p->rate > 0 ? 1 - exp(-seconds / SMOOTHING) : 1;
    p->rate += (current - p->rate) * weight;
    p->marked = time;
    p->mark = *now;
}

static void add_rate(const struct progress_bar *p, const struct progress_now *now, struct str *line)
{
    if (by_bytes(now))
        str_addf(line, "  %s/s", size_text((uint64_t)p->rate));
    else
        str_addf(line, "  %.0f files/s", p->rate);
}

static void add_time_left(const struct progress_bar *p, const struct progress_now *now, struct str *line)
{
    double left = amount_total(now) - amount_done(now);
    if (left <= 0 || p->rate <= 0)
        return;
    double seconds = ceil(left / p->rate);
    if (seconds < 1e8)
        str_addf(line, "  %s left", duration_text((uint64_t)seconds * SECOND));
}

static void add_amounts(const struct progress_now *now, struct str *line)
{
    str_adds(line, count_text(now->files));
    if (now->files_total)
        str_addf(line, "/%s", count_text(now->files_total));
    str_adds(line, " files");
    if (by_bytes(now))
        str_addf(line, "  %s", size_text(now->bytes));
    if (now->bytes_total)
        str_addf(line, "/%s", size_text(now->bytes_total));
}

void progress_line(const struct progress_bar *p, const struct progress_now *now, int width, struct str *line)
{
    CLEANUP_STR struct str tail = STR_INIT;
    double total = amount_total(now), share = total > 0 ? fmin(1, amount_done(now) / total) : 0;
    if (total > 0)
        str_addf(&tail, "%3d%%  ", (int)(share * 100));
    add_amounts(now, &tail);
    add_rate(p, now, &tail);
    add_time_left(p, now, &tail);

    str_adds(line, p->label);
    int room = width - (int)strlen(p->label) - (int)tail.length - 4;
    if (total > 0 && room >= BAR_MIN) {
        str_adds(line, " ");
        progress_add_bar(line, share, room - 1 < BAR_MAX ? room - 1 : BAR_MAX);
    }
    str_adds(line, " ");
    if (!tail.failed && tail.length > 0)
        str_add(line, tail.data, tail.length);
    if (width > 1 && line->length >= (size_t)width) {
        line->length = (size_t)width - 1;
        line->data[line->length] = '\0';
    }
}

static int terminal_width(const struct progress_bar *p)
{
    struct winsize size;
    if (!p->terminal)
        return 0;
    return ioctl(fileno(p->to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
}

void progress_show(struct progress_bar *p, const struct progress_now *now)
{
    uint64_t time = clock_now();
    CLEANUP_STR struct str line = STR_INIT;
    progress_measure(p, now, time);
    if (time - p->shown < (p->terminal ? SECOND / 10 : SECOND))
        return;
    p->shown = time;
    progress_line(p, now, terminal_width(p), &line);
    if (line.failed)
        return;
    if (p->terminal)
        fprintf(p->to, "\r%s\033[K", line.data);
    else
        fprintf(p->to, "%s\n", line.data);
    fflush(p->to);
    p->drawn = p->terminal;
}

void progress_end(struct progress_bar *p)
{
    if (p->drawn)
        fputs("\r\033[K", p->to);
    fflush(p->to);
    p->drawn = false;
}
