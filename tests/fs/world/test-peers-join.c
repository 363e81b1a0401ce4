/* How nodes come into a world and go: joined, refused, hung up, resumed, joined again, and what stays of it. */
#include "tests/fs/world/peering.h"

#include "fs/base/file.h"
#include "fs/world/world.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_refusals(void)
{
    struct fake f;
    struct message_welcome welcome;
    peering_begin(&f, 2, LONG);
    int first = fake_hello(&f, 0, &welcome);
    is_str(welcome.node.id, f.node[0].id, "a welcome says who it is");
    is_uint(welcome.node.capacity, PEERING_RAM, "and how much it holds");
    ok(!memcmp(&welcome.catalog, catalog_digest(dataset.catalog), sizeof welcome.catalog) && !welcome.waiting,
       "and its catalog");
    int second = message_connect(f.node[0].state);
    struct message_hello hello = {.version = MESSAGE_VERSION};
    uint32_t kind = 0;
    void *payload = NULL;
    size_t n = 0;
    message_send(second, MESSAGE_HELLO, &hello, sizeof hello, NULL);
    message_receive(second, &kind, &payload, &n, NULL);
    uint32_t number = 0;
    if (payload && n >= sizeof number)
        memcpy(&number, payload, sizeof number);
    ok(kind == MESSAGE_REFUSED && number == EBUSY, "a second courier is told EBUSY");
    free(payload);
    close(second);
    message_send(first, MESSAGE_LIVE, NULL, 0, NULL);
    is_int(message_receive(first, &kind, &payload, &n, NULL), -ECONNRESET, "frames out of order end a conversation");
    close(first);
    fake_join(&f, 1);
    is_int(peering_state(&f, 0), WORLD_JOINED, "and the next one can be held");
    is_int(peers_command(f.node[0].peers, WORLD_UMOUNT, 7), 0, "a command to all others");
    for (int i = 0; atomic_load(&f.node[1].commands) != WORLD_UMOUNT; i++)
        wait_step(i, "the command arrives");
    is_uint(atomic_load(&f.node[0].commands), 0, "and to them only");
    fake_end(&f);
}

static void test_hang_up(void)
{
    struct fake f;
    struct reader reader[8];
    enum place place;
    peering_join(&f, 2, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, 8, FAKE_HOLD);
    readers_start(reader, 8, &f, 0, file);
    for (int i = 0; atomic_load(&f.node[1].served) < 8; i++)
        wait_step(i, "eight answers are held back");
    fake_leave(&f, 0);
    ok(readers_join(reader, 8, PLACE_SOURCE), "reads in flight when the courier goes are answered from the source");
    peering_await(&f, 0, WORLD_DEGRADED);
    pass("the node is degraded");
    is_int(peering_state(&f, 1), WORLD_JOINED, "the other one is not");
    ok(peering_read_all(&f, 0), "all is read right");
    ok(!store_holds(f.node[0].store, file, 0), "what it does not own it does not keep");
    struct world_view view;
    peers_view(f.node[0].peers, &view);
    ok(view.known && view.lost_bytes > 0 && view.nodes == 2, "it says what is lost: %llu bytes",
       (unsigned long long)view.lost_bytes);
    peers_view_release(&view);
    peering_part(&f);
    fake_join(&f, 1);
    uint64_t bytes = peering_source_bytes(&f);
    is_int(peering_read(&f, 0, file, &place), 0, "joined again");
    ok(place == PLACE_PEER && peering_source_bytes(&f) == bytes, "it asks again, and the source is left alone");
    fake_end(&f);
}

static void resume_another_world(struct fake *f)
{
    struct message_welcome welcome;
    int socket = fake_hello(f, 0, &welcome);
    struct ring ring;
    ring_create(&ring, 2);
    struct message_resume wrong = {.nodes = 2, .me = 0, .layout = f->layout};
    uint32_t kind = 0;
    void *payload = NULL;
    size_t n;
    const int fds[MESSAGE_FDS] = {ring.fd[0], ring.fd[1], ring.fd[2], -1, -1};
    message_send(socket, MESSAGE_RESUME, &wrong, sizeof wrong, fds);
    message_receive(socket, &kind, &payload, &n, NULL);
    is_int((int)kind, MESSAGE_REFUSED, "a courier of another world cannot resume");
    free(payload);
    close(socket);
    ring_close(&ring);
}

static void test_restart(void)
{
    struct fake f;
    enum place place;
    peering_join(&f, 2, LONG);
    peering_read_all(&f, 0);
    uint32_t theirs = peering_owned(&f, 1, 0), ours = peering_owned(&f, 0, 0);
    fake_leave(&f, 0);
    fake_close(&f, 0);
    fake_open(&f, 0, true);
    is_int(peering_state(&f, 0), WORLD_DEGRADED, "a server that is restarted is degraded");
    is_int(peering_read(&f, 0, theirs, &place), 0, "another's file");
    ok(place == PLACE_SOURCE && !store_holds(f.node[0].store, theirs, 0), "is not kept");
    peering_reads(&f, 0, ours, PLACE_RAM, "its own", "is still there");
    fake_resume(&f, 0);
    peering_await(&f, 0, WORLD_JOINED);
    peering_reads(&f, 0, theirs, PLACE_PEER, "resumed", "it asks the peer");
    peering_reads(&f, 1, ours, PLACE_PEER, "and is asked", "for its own");

    fake_leave(&f, 0);
    peering_await(&f, 0, WORLD_DEGRADED);
    resume_another_world(&f);

    fake_close(&f, 0);
    fake_open(&f, 0, false);
    is_int(peering_state(&f, 0), WORLD_ALONE, "a new mount is alone");
    is_int(peering_read(&f, 0, theirs, &place), 0, "another's file");
    ok(store_holds(f.node[0].store, theirs, 0), "is kept now");
    fake_end(&f);
}

/* A server that dies as it joins may not have saved the world: the next one finds the world before. */
static void test_unsaved(void)
{
    struct fake f;
    struct world_mark mark = {0};
    CLEANUP_STR struct str saved = STR_INIT;
    char path[PATH_MAX + NAME_MAX];
    peering_begin(&f, 2, LONG);
    fake_close(&f, 0);
    f.node[0].config.mark = &mark;
    fake_open(&f, 0, false);
    fake_join(&f, 1);
    snprintf(path, sizeof path, "%s/world", f.node[0].state);
    wait_until(access(path, F_OK) == 0);
    is_int(file_read(AT_FDCWD, path, 4096, &saved), 0, "a world is saved");
    peering_part(&f);
    fake_join(&f, 1);
    fake_leave(&f, 0);
    fake_close(&f, 0);
    is_int(file_write_atomic(AT_FDCWD, path, saved.data, saved.length, 0600), 0, "the next one is not");
    fake_open(&f, 0, true);
    resume_another_world(&f);
    fake_resume(&f, 0);
    peering_await(&f, 0, WORLD_JOINED);
    peering_reads(&f, 0, peering_owned(&f, 1, 0), PLACE_PEER, "its courier is taken", "and the peer is asked");
    fake_end(&f);
}

/* Holdings decide: nothing is read again. */
static void test_rejoin(void)
{
    struct fake f;
    peering_join(&f, 3, LONG);
    for (uint32_t i = 0; i < 3; i++)
        peering_read_all(&f, i);
    uint64_t bytes = peering_source_bytes(&f);
    peering_part(&f);
    fake_swap(&f, 0, 2);
    fake_join(&f, 1);
    bool right = true;
    for (uint32_t i = 0; i < 3; i++)
        right &= peering_read_all(&f, i);
    ok(right, "joined in another order");
    is_uint(peering_source_bytes(&f), bytes, "nothing is read again that somebody holds");
    fake_end(&f);
}

/* More worlds than are kept: the last ones stay. */
static void test_layouts(void)
{
    struct fake f;
    struct world_view last;
    char path[PATH_MAX + NAME_MAX], text[DIGEST_TEXT];
    peering_begin(&f, 2, LONG);
    const char *state = f.node[0].state;
    for (int i = 0; i < LAYOUTS_KEPT + 4; i++) { /* older than those to come */
        snprintf(path, sizeof path, "%s/layout-%d", state, i);
        file_write_atomic(AT_FDCWD, path, "", 0, 0600);
        utimensat(AT_FDCWD, path, (struct timespec[2]){{.tv_sec = i}, {.tv_sec = i}}, 0);
    }
    fake_join(&f, 1);
    if (peers_view(f.node[0].peers, &last))
        bail_out("no view");
    snprintf(path, sizeof path, "%s/layout-%s", state, digest_format(&last.layout, text));
    wait_until(access(path, F_OK) == 0);
    peers_view_release(&last);
    peering_part(&f);
    int kept = 0;
    for (int i = 0; i < LAYOUTS_KEPT + 4; i++) {
        char old[PATH_MAX + NAME_MAX];
        snprintf(old, sizeof old, "%s/layout-%d", state, i);
        kept += access(old, F_OK) == 0;
    }
    is_int(kept, LAYOUTS_KEPT - 1, "the last layouts are kept, with the new one");
    fake_close(&f, 0);
    fake_open(&f, 0, true);
    is_int(peering_state(&f, 0), WORLD_DEGRADED, "the next server finds the last world's");
    fake_close(&f, 0);
    is_int(unlink(path), 0, "where it is missing");
    fake_open(&f, 0, true);
    ok(strstr(log_text(), "the layout of the previous world cannot be used"), "the log says so");
    fake_end(&f);
}

int main(void)
{
    peering_set_up();
    test_refusals();
    test_hang_up();
    test_restart();
    test_unsaved();
    test_rejoin();
    test_layouts();
    return peering_done();
}
