/* The verb `plan`, for the control stream and for the files under plan/. */
#ifndef FS_MOUNT_CONTROL_PLAN_H
#define FS_MOUNT_CONTROL_PLAN_H

#include "fs/mount/control/inside.h"
#include "fs/plan/request.h"

/* What a plan was made of. */
struct plan_origin {
    struct digest directory; /* zeros: there never was a world */
    struct digest key;       /* of all of it, the directory and the list among it */
};

/* As verb->run; sets `origin`. */
int plan_answer(struct control *control, const struct request *request, const struct asker *asker,
                struct plan_origin *origin, struct str *reply, struct str *why);

#endif
