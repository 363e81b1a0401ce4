/* Prints a value of a mount's status, for scripts: `value MOUNTPOINT KEY[.KEY…]`. Strings are printed without quotes,
 * groups on one line, everything else as in the JSON. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_MOST = 1 << 24 };

static void print_on_one_line(const char *text, long n)
{
    for (long i = 0; i < n; i++) {
        if (text[i] != '\n') {
            putchar(text[i]);
            continue;
        }
        if (text[i - 1] == ',')
            putchar(' ');
        while (i + 1 < n && text[i + 1] == ' ')
            i++;
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    CLEANUP_STR struct str path = STR_INIT, status = STR_INIT, word = STR_INIT;
    const char *value;
    if (argc != 3)
        return 2;
    str_addf(&path, "%s/.dealfs/status", argv[1]);
    int error = file_read(AT_FDCWD, path.data, STATUS_MOST, &status);
    if (error) {
        fprintf(stderr, "read %s: %s\n", path.data, strerror(-error));
        return 1;
    }
    long n = json_find(status.data, status.length, argv[2], &value);
    if (n < 0) {
        fprintf(stderr, "%s: no value %s\n", path.data, argv[2]);
        return 1;
    }
    if (json_find_string(status.data, status.length, argv[2], &word) == 0)
        puts(word.data ? word.data : "");
    else
        print_on_one_line(value, n);
    return 0;
}
