/* list-samples SOURCE CATALOG NAME: scan, and print a sample list as the control mount shows it; of a list with labels
 * each line begins with the label and a space. */
#include "fs/base/cleanup.h"
#include "fs/catalog/samples.h"
#include "fs/catalog/scanner.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

int main(int argc, char **argv)
{
    CLEANUP_STR struct str text = STR_INIT;
    CLEANUP_CLOSE int fd = argc == 4 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct catalog *c;
    struct scan_progress progress;
    struct samples_table *table = NULL;
    if (fd < 0 || scan_source(fd, argv[2], &(struct scan_options){0}, &c, &text, &progress)) {
        fprintf(stderr, "list-samples: %s\n", text.data ? text.data : "usage: list-samples SOURCE CATALOG NAME");
        return 1;
    }
    int error = samples_table_create(c, NULL, &table);
    struct samples *s = error ? NULL : samples_table_find(table, argv[3]);
    error = s ? samples_text_read(s, 0, samples_text_length(s), &text) : -ENOENT;
    const char *line = text.data;
    for (uint32_t i = 0; !error && i < samples_count(s); i++, line = strchr(line, '\n') + 1) {
        if (samples_packed(s))
            printf("%" PRIu32 " ", samples_record(s, i).label);
        printf("%.*s", (int)(strchr(line, '\n') + 1 - line), line);
    }
    if (error)
        fprintf(stderr, "list-samples: %s: %s\n", argv[3], strerror(-error));
    samples_put(s);
    samples_table_destroy(table);
    catalog_close(c);
    return error != 0;
}
