/* `index`: the records of a container, parsed by the node that owns it. For `dealfs index`, which parses the container
 * itself if the answer is INDEX_HERE. */
#include "fs/control/control-private.h"
#include "fs/control/index-parts.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"
#include "fs/world/extents.h"
#include "fs/world/layout.h"

#include "fs/base/size.h"

#include <errno.h>
#include <string.h>

enum { FILE_NUMBER, FORMAT, TEXT, PIECE };
static const struct key keys[] = {
    [FILE_NUMBER] = {.name = "file", .value = "N", .required = true},
    [FORMAT] = {.name = "format", .choices = INDEX_FORMATS},
    [TEXT] = {.name = "text", .choices = "no|yes"},
    [PIECE] = {.name = "piece", .value = "K"},
    {0},
};

/* The owner of the container's first byte, if it is another, living node. */
static uint32_t find_owner(struct control *control, uint32_t file)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    uint32_t owner = NO_OWNER;
    if (view.owners && view.courier)
        owner = layout_owner(view.owners, layout_group(view.owners, view.me), extents_at(control->extents, file, 0));
    if (owner == view.me || owner >= view.nodes || !view.peer || view.peer[owner].state == PEER_LOST)
        return NO_OWNER;
    return owner;
}

/* Ask once; fails if the other node is lost. */
static int ask_owner(struct control *control, uint32_t owner, uint64_t key, uint32_t piece, struct str *reply)
{
    _Static_assert((int)INDEX_PIECE == (int)BLOB_PIECE, "a reply is a piece of a blob");
    const struct blob_question question = {owner, key, (uint64_t)piece * BLOB_PIECE};
    uint64_t length;
    char *room = str_reserve(reply, BLOB_PIECE);
    int error = room ? peers_blob(control->config.peers, &question, room, &length) : -ENOMEM;
    if (!error)
        reply->length += length - question.offset < BLOB_PIECE ? (size_t)(length - question.offset) : BLOB_PIECE;
    return error;
}

static int index_run(struct control *control, const struct request *request, const struct asker *asker)
{
    const struct key_value *value = request->value;
    static const struct index_answer here = {.state = INDEX_HERE};
    uint64_t file, piece = 0, files = catalog_files(control->config.catalog);
    if (files == 0 || number_parse(value[FILE_NUMBER].text, 0, files - 1, &file) ||
        (value[PIECE].text && number_parse(value[PIECE].text, 0, UINT32_MAX - 1, &piece)))
        return str_fail(asker->why, -EINVAL,
                        "`file` must be the number of a file in `samples`, and `piece` a whole number");
    uint32_t owner = find_owner(control, (uint32_t)file);
    uint64_t key = index_key((uint32_t)file, value[FORMAT].choice, value[TEXT].choice);
    int error = charge_reach(asker->charge, BLOB_PIECE, asker->why);
    if (error)
        return error;
    error = owner == NO_OWNER ? -ENOTCONN : ask_owner(control, owner, key, (uint32_t)piece, asker->reply);
    if (error && piece > 0)
        return str_fail(asker->why, -EHOSTUNREACH, "the node that has the rest of these records does not answer");
    if (error)
        str_add(asker->reply, &here, sizeof here);
    return asker->reply->failed ? str_no_memory(asker->why) : 0;
}

const struct verb verb_index = {
    .name = "index",
    .about = "list the records of a container on the node that owns it; reply: the records",
    .keys = keys,
    .run = index_run,
};
