/* Memory for pixels, with a descriptor by which one process of a crew may have it as well. It lasts from one image to
 * the next, since making it again takes a tenth of the time of decoding into it. */
#ifndef FS_IMAGE_FRAME_H
#define FS_IMAGE_FRAME_H

#include <stddef.h>

struct image_frame {
    char *bytes;   /* begins with a page */
    size_t size;   /* bytes of memory that it has, whole pages */
    size_t mapped; /* as much or more */
    int fd;
};

int frame_create(size_t size, struct image_frame **frame);
/* What it held may be lost. -ENOMEM: it is as it was. */
int frame_resize(struct image_frame *frame, size_t size);
/* Its memory is free then, also where a process maps it still. */
void frame_destroy(struct image_frame *frame);

#endif
