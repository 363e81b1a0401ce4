/* The verb `plan`, for the control stream and for files below plan/. */
#ifndef FS_CONTROL_VERB_PLAN_H
#define FS_CONTROL_VERB_PLAN_H

#include "fs/control/plan-question.h"

/* 0 and the reply, and sets `origin`; or -errno and why. */
int plan_answer(struct control *control, const struct plan_question *question, struct plan_origin *origin);

#endif
