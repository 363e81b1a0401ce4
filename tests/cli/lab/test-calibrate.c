/* cli/lab/calibrate: the rates, from given times. What the mount says, how long reads take and which images there are
 * is made up here. Node 1 of four owns samples 0 and 1 and has cached 9. Node 2 owns 2 to 6, node 0 7, and nobody 8. */
#include "cli/lab/calibrate.h"
#include "cli/lab/decode.h"
#include "cli/lab/epoch.h"
#include "cli/live/client.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = 10, NODES = 4, SELF = 1, SECONDS = 2 };
static const char owner[SAMPLES + 1] = "11222220--";
static ino_t source;          /* the directory */
static unsigned source_reads; /* of samples */

int client_find(const char *mountpoint, enum live_health worst, struct live *live)
{
    ok(worst == LIVE_UP, "the mount must be up");
    *live = (struct live){.mountpoint = strdup(mountpoint),
                          .source = strdup(test_path("source")),
                          .control = strdup(test_path("control"))};
    return 0;
}

int client_become(struct live *live)
{
    (void)live;
    return 0;
}

int client_file(const struct live *live, const char *name, struct str *out)
{
    (void)live;
    (void)name;
    str_addf(out, "{\"node\": %d, \"nodes\": %d}", SELF, NODES);
    return 0;
}

int client_send(const struct live *live, const struct str *request, struct str *reply, struct str *why)
{
    (void)live;
    (void)why;
    for (const char *path = strchr(request->data, '\n') + 1; path < request->data + request->length; path += 2)
        str_addf(reply, "0\t%c\t%s\t%c\n", owner[*path - '0'], *path == '9' ? "ram" : "-", *path);
    return 0;
}

/* A sample of the source takes 20 ms, one of this node 1 ms, of node 2 4 ms, of node 0 10 ms. */
int epoch_read(struct epoch *epoch)
{
    static const unsigned ms[SAMPLES] = {1, 1, 4, 4, 4, 4, 4, 10, 1000, 1};
    struct stat root;
    fstat(epoch->root[0], &root);
    bool from_source = root.st_ino == source;
    source_reads += from_source ? epoch->files : 0;
    epoch->elapsed = 0;
    for (uint32_t i = 0; i < epoch->files; i++)
        epoch->elapsed += (from_source ? 20 : ms[*epoch->path[i] - '0']) * MILLISECOND;
    return 0;
}

void epoch_forget(const struct epoch *epoch)
{
    (void)epoch;
}

bool decode_is_picture(const struct str *bytes)
{
    return bytes->length == 1 && *bytes->data == 'p';
}

double decode_rate(const struct str *picture, uint32_t pictures, unsigned seconds)
{
    (void)picture;
    return 100 * seconds + pictures;
}

static void make_files(void)
{
    static const char list[] = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    struct stat made;
    mkdir(test_path("source"), 0700);
    mkdir(test_path("mount"), 0700);
    mkdir(test_path("control"), 0700);
    if (file_write_atomic(AT_FDCWD, test_path("control/samples"), list, sizeof list - 1, 0600) ||
        stat(test_path("source"), &made))
        bail_out("the list of samples");
    source = made.st_ino;
    for (int i = 0; i < SAMPLES; i++)
        if (file_write_atomic(AT_FDCWD, test_path("mount/%d", i), i < 3 ? "p" : "x", 1, 0600))
            bail_out("a sample");
}

static void is_rate(double got, double expected, const char *what)
{
    ok(fabs(got - expected) < 1e-6 * expected, "%s: %g is %g", what, got, expected);
}

int main(void)
{
    struct calibration c;
    make_files();
    is_int(calibrate(test_path("mount"), SECONDS, &c), 0, "measure");
    is_uint(c.samples, SAMPLES, "all samples");
    is_uint(c.nodes, NODES, "all nodes");
    is_rate(c.cached, 0.9, "all but one are cached");
    is_rate(c.storage, 50, "the source gives 10 samples in 200 ms");
    is_uint(source_reads, SAMPLES, "and is read once, as it may have a cache");
    is_rate(c.local, 1000, "this node has three, each in 1 ms");
    is_rate(c.cache, NODES * 6 / 0.03, "others have six in 30 ms, and all four nodes read at once");
    is_rate(c.balance, NODES / 2 * 250,
            "node 2, which has most, gives one in 4 ms, and half of the nodes read at once");
    is_rate(c.preprocess, 100 * SECONDS + 3, "the images are decoded");
    return done_testing();
}
