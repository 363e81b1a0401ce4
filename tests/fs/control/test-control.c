/* The texts of the control mount, over a catalog of a few files and a store that says what the test wants it to say. */
#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/plan-content.h"
#include "fs/control/plan-files.h"
#include "fs/control/texts.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/wire/feed.h"
#include "fs/wire/handover.h"
#include "tests/fs/control/fake-node.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Without peers. */
static uint32_t keeper = 77;
static struct control_config config = {
    .mount = &mount,
    .store = (struct store *)&fake,
    .generation = 3,
    .keeper = &keeper,
};

static struct control *create(void)
{
    struct control *control = NULL;
    int error = control_create(&config, &control);
    if (error)
        bail_out("control_create: %s", strerror(-error));
    return control;
}

/* --- status --- */

static void test_status(void)
{
    CLEANUP_STR struct str json = STR_INIT, pid = STR_INIT;
    struct control *control = create();
    memset(&fake.stats, 0, sizeof fake.stats);
    fake.stats.reads[PLACE_RAM] = 5;
    fake.stats.bytes[PLACE_SOURCE] = 1 << 20;
    fake.stats.source_samples = 2;
    fake.stats.tier[TIER_RAM] = (struct tier_status){.state = TIER_OPEN, .capacity = 100, .held = 60};
    is_int(control_status(control, &json), 0, "status");
    fake_checks(&json, "node=0 nodes=1 state='alone' layout=null pids.keeper=77");
    fake_check(&json, "id", "\"my id\"");
    str_addf(&pid, "%d", (int)getpid());
    fake_check(&json, "pids.server", pid.data);
    fake_checks(&json, "pids.courier=null catalog.files=3 catalog.bytes=300 ram.capacity=100 ram.held=60 "
                       "ram.state='open' ssd.capacity=0 reads.ram=5 bytes.source=1048576 source.samples=2 "
                       "samples.1='imagefolder' errors={} health=[] generation=3");
    keeper = 78;
    fake_status(control, &json);
    fake_check(&json, "pids.keeper", "78");
    control_destroy(control);
}

static void test_health(void)
{
    CLEANUP_STR struct str json = STR_INIT;
    struct control *control = create();
    memset(&fake.stats, 0, sizeof fake.stats);
    fake.stats.tier[TIER_RAM] = (struct tier_status){.state = TIER_CLOSED, .error = ENOSPC, .bad_values = 4};
    fake.stats.tier[TIER_SSD] = (struct tier_status){.state = TIER_FAILED, .error = -EIO};
    fake.stats.errors[EIO] = 2;
    fake.stats.first_failed[EIO] = 1;
    fake.stats.failed_at[EIO] = clock_realtime() - 120 * SECOND;
    fake.stats.errors[ESTALE] = 1; /* long ago */
    fake.stats.failed_at[ESTALE] = clock_realtime() - 3700 * SECOND;
    fake.progress = (struct stage_progress){.state = STAGE_FAILED, .failed = 9, .error = -EACCES};
    control_status(control, &json);
    fake_check(&json, "health.0",
               "\"the ram tier accepts no more data: No space left on device; its cached data is still used\"");
    fake_check(&json, "health.1", "\"the ram tier returned 4 damaged values; they were dropped and fetched again\"");
    fake_check(&json, "health.2",
               "\"the ssd tier is not used until the next mount: Input/output error; its files are not changed\"");
    const char *failed = "";
    json_find(json.data, json.length, "health.3", &failed);
    ok(strncmp(failed, "\"2 reads failed: Input/output error, first ", 43) == 0 && strstr(failed, "last 12"),
       "reads that failed: the first file, and when the last one was");
    fake_check(&json, "health.4", "\"9 files could not be staged, the first: Permission denied\"");
    fake_check(&json, "ram.error", "\"No space left on device\"");
    fake_checks(&json, "errors.EIO=2 stage.state='failed' condition='fault'");
    memset(fake.stats.tier, 0, sizeof fake.stats.tier);
    fake_status(control, &json);
    fake_check(&json, "condition", "\"degraded\"");
    fake.stats.failed_at[EIO] = clock_realtime();
    fake_status(control, &json);
    fake_check(&json, "condition", "\"fault\"");
    memset(&fake.progress, 0, sizeof fake.progress);
    control_destroy(control);
}

static void test_no_store(void)
{
    CLEANUP_STR struct str json = STR_INIT, text = STR_INIT, nodes = STR_INIT;
    struct control_config without = config;
    struct control *control;
    without.store = NULL;
    without.keeper = NULL;
    is_int(control_create(&without, &control), 0, "a control without a store");
    is_int(control_status(control, &json), 0, "has a status");
    fake_check(&json, "reads.ram", "0");
    is_int(control_metrics(control, &text), 0, "and metrics");
    is_int(control_nodes(control, &nodes), 0, "and nodes");
    control_destroy(control);
    control_destroy(NULL);
}

static struct kept_item *use_content(struct kept *kept, uint32_t number)
{
    struct digest key = {{0}};
    struct kept_item *item = NULL;
    memcpy(key.byte, &number, sizeof number);
    if (kept_get(kept, &key, &(struct asker){.gave_up = NULL}, &item) == 1)
        kept_done(kept, item, 100);
    return item;
}

/* Each stream has a mapping, of which a process can have 65,530. */
static void test_small_streams(void)
{
    enum { FILES = 5000, MAPPINGS = 4096 };
    CLEANUP_STR struct str json = STR_INIT;
    struct control *control = create();
    struct kept *kept = plan_files_kept(control->files);
    memset(&fake.stats, 0, sizeof fake.stats);
    for (uint32_t i = 0; i < MAPPINGS; i++)
        kept_put(kept, use_content(kept, i));
    fake_status(control, &json);
    fake_checks(&json, "health=[] condition='good'");
    for (uint32_t i = MAPPINGS; i < FILES; i++)
        kept_put(kept, use_content(kept, i));
    ok(kept->count <= MAPPINGS, "the number of small streams in the cache is bounded: %u", kept->count);
    fake_status(control, &json);
    fake_check(&json, "condition", "\"degraded\"");
    ok(strstr(json.data, "files below plan/ are read at the same time"), "health says that more are in use");
    control_destroy(control);
}

/* --- metrics --- */

static void has(const struct str *text, const char *line)
{
    ok(strstr(text->data, line) != NULL, "metrics have %.60s", line);
}

static void test_metrics(void)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct control *control = create();
    memset(&fake.stats, 0, sizeof fake.stats);
    fake.stats.reads[PLACE_RAM] = 6;
    fake.stats.latency[PLACE_RAM][0] = 1;
    fake.stats.latency[PLACE_RAM][3] = 2;
    fake.stats.latency[PLACE_RAM][STORE_BUCKETS - 1] = 3;
    fake.stats.latency_sum[PLACE_RAM] = UINT64_C(12000000345);
    fake.stats.errors[ESTALE] = 7;
    fake.stats.errors[ETIMEDOUT] = 8;
    is_int(control_metrics(control, &text), 0, "metrics");
    has(&text, "# TYPE dealfs_reads_total counter\ndealfs_reads_total{from=\"ram\"} 6\n");
    has(&text, "\ndealfs_read_seconds_bucket{from=\"ram\",le=\"0.000001\"} 1\n");
    has(&text, "\ndealfs_read_seconds_bucket{from=\"ram\",le=\"0.000004\"} 1\n");
    has(&text, "\ndealfs_read_seconds_bucket{from=\"ram\",le=\"0.000008\"} 3\n");
    has(&text, "\ndealfs_read_seconds_bucket{from=\"ram\",le=\"1073.741824\"} 3\n");
    has(&text, "\ndealfs_read_seconds_bucket{from=\"ram\",le=\"+Inf\"} 6\n");
    has(&text, "\ndealfs_read_seconds_sum{from=\"ram\"} 12.000000345\n");
    has(&text, "\ndealfs_read_seconds_count{from=\"ram\"} 6\n");
    has(&text, "\ndealfs_errors_total{errno=\"ESTALE\"} 7\n");
    has(&text, "\ndealfs_timeouts_total 8\n");
    has(&text, "dealfs_info{version=\"");
    is_int(text.data[text.length - 1], '\n', "a newline at the end");
    control_destroy(control);
}

static void test_metrics_file(void)
{
    CLEANUP_STR struct str text = STR_INIT, json = STR_INIT;
    struct control *control;
    memset(&fake.stats, 0, sizeof fake.stats);
    mount.metrics_file = (char *)test_path("node.prom");
    control = create();
    control_destroy(control); /* joins the writer, which begins with writing */
    mount.metrics_file = NULL;
    is_int(file_read(AT_FDCWD, test_path("node.prom"), 1 << 20, &text), 0, "metrics_file is written at once");
    has(&text, "dealfs_info{");

    mount.metrics_file = (char *)test_path("mnt/.dealfs/x.prom");
    control = create();
    control_status(control, &json);
    fake_check(&json, "health.0", "\"the metrics file cannot be written: Read-only file system\"");
    control_destroy(control);
    mount.metrics_file = NULL;
}

/* --- requests --- */

static void run(struct control *control, const char *request, int expected, const char *text)
{
    CLEANUP_STR struct str reply = STR_INIT;
    is_int(fake_run(control, request, &reply), expected, "%.40s", request);
    if (text)
        is_str(reply.data, text, "its text");
}

static bool always(void *user)
{
    ++*(int *)user;
    return true;
}

static void test_verbs(void)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT, why = STR_INIT;
    struct control *control = create();
    int asked = 0;
    struct asker asker = {.gave_up = always, .user = &asked, .reply = &reply, .why = &why};
    memset(&fake.stats, 0, sizeof fake.stats);
    run(control, "where\na\nb\n.//b\nnothing\nd\n\nc\n", 0,
        "0\t-\t-\ta\n"
        "1\t0\tssd\tb\n"
        "1\t0\tssd\t.//b\n"
        "-\t-\t-\tnothing\n"
        "-\t-\t-\td\n"
        "-\t-\t-\t\n"
        "2\t-\t-\tc\n");
    run(control, "where\nd/../b\n", 0, "-\t-\t-\td/../b\n");
    run(control, "stage", 0, NULL);
    is_int(fake.progress.state, STAGE_RUNNING, "staging was started");
    run(control, "stage action=stop\n", 0, NULL);
    is_int(fake.progress.state, STAGE_STOPPED, "and stopped");
    fake.start_error = -ENOSPC;
    run(control, "stage action=start\n", -ENOSPC, "cannot start staging: No space left on device");
    fake.start_error = 0;
    run(control, "samples name=two\nc\na\n", 0, NULL);
    run(control, "samples name=two\n\n", -EINVAL, NULL);
    run(control, "samples name=a%2Fb\nb\n", -EINVAL, NULL);

    str_adds(&request, "where\n");
    for (int i = 0; i < 10000; i++)
        str_adds(&request, "b\n");
    is_int(verbs_run(control, request.data, request.length, &asker), -EINTR, "nobody waits: given up");
    is_int(asked, 1, "at the first question");
    control_destroy(control);

    control = create();
    struct samples *list = samples_table_find(control->samples, "two");
    ok(list && samples_count(list) == 2 && samples_file(list, 0) == 2, "an uploaded list is there for the next server");
    if (list)
        samples_put(list);
    control_destroy(control);
}

/* --- small parts --- */

static void refuse(struct refusals *r, bool other, struct refusal refusal, const char *line, size_t n, const char *why)
{
    struct str text = STR_INIT;
    refusal_begin(&text, line, n);
    str_adds(&text, why);
    refusal.text = str_steal(&text);
    refusals_add(r, other, refusal);
}

static void test_refusals(void)
{
    struct refusals r;
    CLEANUP_STR struct str text = STR_INIT;
    char line[400];
    int lines = 0;
    refusals_init(&r);
    refusals_text(&r, &text);
    is_str(text.data, "", "no refusals, no text");
    refuse(&r, false, (struct refusal){UINT64_C(1000000000123456789), 12, 34, NULL}, "a\tb\n", 4, "because");
    refusals_text(&r, &text);
    is_str(text.data, "2001-09-09T01:46:40.123Z\t12\t34\ta\\x09b\\x0a\tbecause\n", "one line");
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 1000; i++)
        refuse(&r, false, (struct refusal){1, 1, 1, NULL}, line, sizeof line, "again");
    str_clear(&text);
    refusals_text(&r, &text);
    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    is_int(lines, REFUSALS, "the last ones are kept");
    is_uint(refusals_count(&r), 1001, "all are counted");
    ok(text.length < (size_t)REFUSALS * 400, "long lines are cut");
    refuse(&r, false, (struct refusal){3, 1, 1, NULL}, "mine", 4, "third");
    for (int i = 0; i < 1000; i++)
        refuse(&r, true, (struct refusal){2, 2, 2, NULL}, "theirs", 6, "second");
    str_clear(&text);
    refusals_text(&r, &text);
    ok(strstr(text.data, "second\n1970-01-01T00:00:00.000Z\t1\t1\tmine\tthird\n") && strstr(text.data, "again"),
       "those of others push out none of the owner's, and all stand in order");
    refusals_fini(&r);
}

/* Reports with as many names as there can be. */
static void test_epochs(void)
{
    struct feed *feed = calloc(1, sizeof *feed);
    struct feed_report *report = calloc(1, sizeof *report);
    CLEANUP_STR struct str text = STR_INIT;
    const char *value;
    if (!feed || !report)
        bail_out("no memory");
    config.feed = feed;
    struct control *control = create();
    *report = (struct feed_report){.unread_named = UINT32_MAX, .unplanned_named = FEED_NAMED};
    for (uint64_t n = 1; n <= FEED_REPORTS; n++) {
        report->number = n;
        feed_report_put(feed, (unsigned)(n - 1), report);
    }
    atomic_store(&feed->reports, FEED_REPORTS);
    is_int(control_epochs(control, &text), 0, "reports that name all they can");
    ok(text.length < 16 << 20, "are no more text than the server may hold");
    ok(json_find(text.data, text.length, "255.missed.255.path", &value) > 0, "the latest one names all");
    ok(json_find(text.data, text.length, "0.number", &value) > 0, "the first one is there");
    is_int(json_find(text.data, text.length, "0.missed.0", &value), -ENOENT, "and names none");
    control_destroy(control);
    config.feed = NULL;
    free(report);
    free(feed);
}

/* File names have up to 1,000 characters. */
static void test_many_ranks(void)
{
    enum { RANKS = 1000, RANKS_MORE = 40000 };
    static struct feed feed;
    CLEANUP_STR struct str nodes = STR_INIT, line = STR_INIT, reply = STR_INIT;
    struct feed_plan plan;
    config.feed = &feed;
    mount.feed = 1;
    atomic_store(&feed.off, 1); /* nobody watches */
    struct control *control = create();
    for (int i = 0; i < RANKS; i++)
        str_adds(&nodes, i ? ",0" : "0");
    str_addf(&line, "plan epoch=1 ranks=%d batch=1 rank=5 feed=yes nodes=%s\n", RANKS, nodes.data);
    is_int(fake_run(control, line.data, &reply), 0, "a plan with the nodes of %d ranks", RANKS);
    ok(feed_plan_get(&feed, 0, &plan) && plan.number > 0, "is fed");
    ok(strlen(plan.pairs) < 200, "by a short name: %s", plan.pairs);
    CLEANUP_FREE char *pairs = node_texts_expand(&control->node_texts, plan.pairs);
    ok(pairs && strlen(pairs) > nodes.length, "which stands for all of it");
    struct plan_request wanted;
    is_int(content_parse(control, pairs, &wanted, &reply), 0, "it is understood");
    ok(strcmp(wanted.nodes, nodes.data) == 0, "as it was requested");
    static const char other[] = "a=b,nodes=@00000000000000000000000000000000,c=d";
    CLEANUP_FREE char *unknown = node_texts_expand(&control->node_texts, other);
    ok(strcmp(unknown, other) == 0, "a digest that nobody knows stays");
    str_clear(&line);
    str_addf(&line, "plan epoch=1 ranks=%d batch=1 rank=5 nodes=0", RANKS_MORE);
    for (int i = 1; i < RANKS_MORE; i++)
        str_adds(&line, ",0");
    str_adds(&line, "\n");
    is_int(fake_run(control, line.data, &reply), 0, "a line of %zu bytes", line.length);
    control_destroy(control);
    config.feed = NULL;
    mount.feed = 0;
}

/* A server without peers, whose mount was in a world before others died, is not alone. */
static void test_lost(void)
{
    static struct handover handover;
    CLEANUP_STR struct str why = STR_INIT;
    struct control *control = create();
    control->config.handover = &handover;
    is_int(world_view_await(control, NULL, &why), 0, "a node that never was in a world knows its layout");
    atomic_store(&handover.mark.layout, 7);
    is_int(world_view_await(control, &(struct asker){.gave_up = NULL}, &why), -EAGAIN,
           "one that was, and has no peers");
    ok(strstr(why.data, "does not know the current layout"), "does not, and says so");
    run(control, "exchange epoch=1 fraction=0.5\n", -EAGAIN, NULL);
    control_destroy(control);
}

static mode_t others_may(struct control *control, uint64_t ino)
{
    struct stat st;
    entry_stat(control, entry_of(ino), 0, &st);
    return st.st_mode & S_IRWXO;
}

/* Modes that the source has reduced since the scan. */
static void test_reduced(void)
{
    CLEANUP_STR struct str json = STR_INIT, calm = STR_INIT;
    struct control *control = create();
    memset(&fake.stats, 0, sizeof fake.stats);
    memset(&fake.progress, 0, sizeof fake.progress);
    control->public = true;
    ok(others_may(control, INO_SAMPLES) && others_may(control, INO_STATUS), "all may see names where all may read");
    fake.reduced = true;
    ok(!others_may(control, INO_SAMPLES) && others_may(control, INO_STATUS), "not after the source has reduced a mode");
    fake.reduced = false;
    fake.stats.round_seconds = 60;
    control_status(control, &calm);
    ok(!strstr(calm.data, "takes effect within"), "health does not report short rounds");
    fake.stats.round_seconds = 3600;
    control_status(control, &json);
    ok(strstr(json.data, "a directory's mode that is reduced in the source takes effect within 3600 s: each"),
       "how long a round over the directories takes");
    fake_check(&json, "condition", "\"good\"");
    control_destroy(control);
}

/* This program has another file than the installed server, if there is one. */
static void test_upgrade(void)
{
    static struct handover handover;
    struct control *control = create();
    control->config.handover = &handover;
    for (uint32_t state = PROGRAM_INSTALLED; state <= PROGRAM_REFUSED; state++) {
        atomic_store(&handover.program, state);
        run(control, "upgrade\n", 0, "begun\n");
        is_int(atomic_load(&handover.program), PROGRAM_ASKED, "in state %u, also on trial, an upgrade is requested",
               state);
    }
    control_destroy(control);
}

int main(void)
{
    fake_begin();
    fake.tier = TIER_SSD;
    fake.file = 1;
    config.catalog = catalog;
    test_status();
    test_health();
    test_small_streams();
    test_epochs();
    test_no_store();
    test_metrics();
    test_metrics_file();
    test_verbs();
    test_refusals();
    test_many_ranks();
    test_lost();
    test_upgrade();
    test_reduced();
    fake_end();
    return done_testing();
}
