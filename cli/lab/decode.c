/* Decodes JPEG to RGB.
 *
 * One process per processor, without rights (confine.h), because the images come from the dataset. Each reports through
 * a pipe how many it has decoded. A process that dies of an image reports nothing. */
#include "cli/lab/decode.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/image/confine.h"
#include "fs/image/image.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MOST = 256 };

bool decode_is_picture(const struct str *bytes)
{
    return image_is_jpeg(bytes->data, bytes->length);
}

static bool decode_picture(const struct str *bytes)
{
    const struct image_wish wish = {.channels = 3, .lenient = true};
    struct image_info info;
    if (image_probe(bytes->data, bytes->length, NULL, &info, NULL) != IMAGE_FINE)
        return false;
    struct image_pixels pixels = image_decoded(&info, &wish);
    CLEANUP_FREE uint8_t *memory = pixels.data = malloc(image_pixels_size(&pixels));
    return memory && image_decode(bytes->data, bytes->length, &wish, &pixels, NULL) == IMAGE_FINE;
}

struct decoding {
    const struct str *picture;
    uint32_t pictures;
    uint64_t end;
    unsigned processes;
    int to;
};

/* In process number `first`: decodes its images in turn. */
static _Noreturn void decode_body(const struct decoding *d, unsigned first)
{
    const char *failed;
    uint64_t done = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(d->to, STDIN_FILENO) < 0 || close_range(STDIN_FILENO + 1, ~0u, 0) < 0 || confine_process(&failed) < 0)
        _exit(1);
    for (uint64_t i = first; clock_now() < d->end; i += d->processes)
        done += decode_picture(&d->picture[i % d->pictures]);
    _exit(write(STDIN_FILENO, &done, sizeof done) == sizeof done ? 0 : 1);
}

double decode_rate(const struct str *picture, uint32_t pictures, unsigned seconds)
{
    uint64_t began = clock_now(), done = 0, one;
    unsigned wanted = processors_count(), started = 0;
    pid_t process[PROCESSES_MOST];
    int ends[2];
    if (pictures == 0 || pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    wanted = wanted < PROCESSES_MOST ? wanted : PROCESSES_MOST;
    const struct decoding d = {picture, pictures, began + seconds * SECOND, wanted, ends[1]};
    for (; started < wanted && (process[started] = fork()) >= 0; started++)
        if (process[started] == 0)
            decode_body(&d, started);
    close(ends[1]);
    while (read(ends[0], &one, sizeof one) == sizeof one) /* until all have ended */
        done += one;
    close(ends[0]);
    while (started > 0)
        waitpid(process[--started], NULL, 0);
    return (double)done / ((double)(clock_now() - began) / 1e9);
}
