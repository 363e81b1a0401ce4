/* Layouts as a program, for tests in other languages. Reads requests from stdin until its end:
 *
 *   deal KEY=NUMBER …\n          nodes, groups, files; then raw: the files' sizes (u64), for each node a struct holding
 *                                (3 × u64), and with held=1 the holders (groups × extents u16)
 *   extend nodes=N\n             then raw: the room of each node (u64)
 *   exchange KEY=NUMBER …\n      cause, fraction, epoch, seed
 *
 * The latter two change the layout that is there. The reply is `refused ERRNO\n`, or a line with the number of extents
 * and the digest, and then raw all owners (groups × extents u16). */
#include "tests/fs/world/worlds.h"
#include "tests/lib/requests.h"
#include "tests/lib/tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 4096 };

static struct sizes sizes;
static struct layout *current;

static void answer(int error, struct layout *next)
{
    if (error) {
        printf("refused %d\n", -error);
        return;
    }
    layout_close(current);
    current = next;
    char digest[DIGEST_TEXT];
    uint64_t extents = extents_count(sizes.extents);
    printf("extents=%" PRIu64 " digest=%s\n", extents, digest_format(layout_digest(current), digest));
    for (uint32_t group = 0; group < layout_groups(current); group++)
        for (uint64_t e = 0; e < extents; e++) {
            uint16_t owner = (uint16_t)layout_owner(current, group, e);
            fwrite(&owner, sizeof owner, 1, stdout);
        }
}

static void fill_members(struct message_member *member, const struct holding *holding, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++) {
        snprintf(member[i].node.id, sizeof member[i].node.id, "%032x", i);
        snprintf(member[i].node.host, sizeof member[i].node.host, "host%u", i);
        member[i].holding = holding[i];
    }
}

static void deal(const char *line)
{
    uint32_t nodes = (uint32_t)request_number(line, "nodes", 1), groups = (uint32_t)request_number(line, "groups", 1);
    uint32_t files = (uint32_t)request_number(line, "files", 0);
    uint64_t *size = request_take(files * sizeof *size);
    struct holding *holding = request_take(nodes * sizeof *holding);
    struct message_member *member = calloc(nodes, sizeof *member);
    if (!member)
        bail_out("no memory");
    if (current)
        sizes_end(&sizes);
    sizes_begin(&sizes, size, files);
    uint16_t *holder =
        request_number(line, "held", 0) ? request_take(groups * extents_count(sizes.extents) * sizeof *holder) : NULL;
    fill_members(member, holding, nodes);
    struct layout_input input = {sizes.catalog, sizes.extents, nodes, groups, member, holder};
    struct layout *next = NULL;
    int error = layout_compute(&input, &next);
    answer(error, next);
    free(size);
    free(holding);
    free(member);
    free(holder);
}

static void extend(const char *line)
{
    uint64_t *room = request_take(request_number(line, "nodes", 1) * sizeof *room);
    struct layout *next = NULL;
    int error = layout_extend(current, sizes.extents, room, &next);
    answer(error, next);
    free(room);
}

static void exchange(const char *line)
{
    struct turn turn = {
        .cause = (uint32_t)request_number(line, "cause", TURN_EXCHANGE),
        .fraction = (uint32_t)request_number(line, "fraction", 0),
        .epoch = request_number(line, "epoch", 0),
        .seed = request_number(line, "seed", 0),
    };
    struct layout *next = NULL;
    int error = layout_exchange(current, sizes.extents, &turn, &next);
    answer(error, next);
}

int main(void)
{
    char line[LINE_MOST];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "deal ", 5) == 0)
            deal(line);
        else if (strncmp(line, "extend ", 7) == 0)
            extend(line);
        else
            exchange(line);
        fflush(stdout);
    }
    return 0;
}
