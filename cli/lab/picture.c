/* Synthetic images with the properties of photographs that matter to a JPEG codec: large soft areas, a few edges, and
 * grain.
 *
 * Integer arithmetic and our own generator, so that the pixels are the same everywhere. */
#include "cli/lab/picture.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WIDTH = 600,
    HEIGHT = 428,
    QUALITY = 92,
    CELL = 64, /* of the grid of random colours that the soft areas interpolate */
    GRID_X = WIDTH / CELL + 2,
    GRID_Y = HEIGHT / CELL + 2,
    GRAIN = 40,
};

struct picture {
    uint64_t random;
    unsigned class;
    int centre_x, centre_y, size;
    unsigned char colour[3];
    unsigned char grid[GRID_Y][GRID_X][3];
};

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void picture_init(struct picture *p, uint64_t number, unsigned class)
{
    p->random = number * 0x2545f4914f6cdd1d + 1;
    p->class = class;
    p->size = 60 + (int)(next_random(&p->random) % 80);
    p->centre_x = WIDTH / 4 + (int)(next_random(&p->random) % (WIDTH / 2));
    p->centre_y = HEIGHT / 4 + (int)(next_random(&p->random) % (HEIGHT / 2));
    for (int i = 0; i < 3; i++)
        p->colour[i] = (unsigned char)next_random(&p->random);
    for (int y = 0; y < GRID_Y; y++) {
        for (int x = 0; x < GRID_X; x++) {
            for (int i = 0; i < 3; i++)
                p->grid[y][x][i] = (unsigned char)(32 + next_random(&p->random) % 192);
        }
    }
}

/* The shape that the class has. */
static bool in_figure(const struct picture *p, int x, int y)
{
    int dx = x - p->centre_x, dy = y - p->centre_y, size = p->size;
    switch (p->class % 6) {
    case 0: /* disc */
        return dx * dx + dy * dy < size * size;
    case 1: /* square */
        return abs(dx) < size && abs(dy) < size;
    case 2: /* diamond */
        return abs(dx) + abs(dy) < size;
    case 3: /* ring */
        return dx * dx + dy * dy < size * size && 4 * (dx * dx + dy * dy) > size * size;
    case 4: /* cross */
        return (abs(dx) < size / 4 && abs(dy) < size) || (abs(dy) < size / 4 && abs(dx) < size);
    default: /* stripes */
        return abs(dx) < size && abs(dy) < size && (dx + WIDTH) / 12 % 2 == 0;
    }
}

static int picture_blend(const struct picture *p, int x, int y, int i)
{
    int column = x / CELL, row = y / CELL, fx = x % CELL, fy = y % CELL;
    int top = p->grid[row][column][i] * (CELL - fx) + p->grid[row][column + 1][i] * fx;
    int bottom = p->grid[row + 1][column][i] * (CELL - fx) + p->grid[row + 1][column + 1][i] * fx;
    return (top * (CELL - fy) + bottom * fy) / (CELL * CELL);
}

static void draw_line(struct picture *p, int y, unsigned char *line)
{
    for (int x = 0; x < WIDTH; x++) {
        bool figure = in_figure(p, x, y);
        uint64_t random = next_random(&p->random);
        int grain = (int)(random % GRAIN) - GRAIN / 2;
        for (int i = 0; i < 3; i++) {
            int value = picture_blend(p, x, y, i) + grain;
            if (figure)
                value = (value + 3 * p->colour[i]) / 4;
            *line++ = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
    }
}

int picture_write(int directory, const char *name, uint64_t number, unsigned class)
{
    const struct image_encoding encoding = {.quality = QUALITY};
    struct picture picture;
    CLEANUP_FREE uint8_t *memory = malloc((size_t)WIDTH * HEIGHT * 3);
    CLEANUP_STR struct str bytes = STR_INIT;
    CLEANUP_CLOSE int fd = -1;
    if (!memory)
        return -ENOMEM;
    picture_init(&picture, number, class);
    for (int y = 0; y < HEIGHT; y++)
        draw_line(&picture, y, memory + (size_t)y * WIDTH * 3);
    const struct image_pixels pixels = {memory, WIDTH, HEIGHT, 3};
    if (image_encode(&pixels, &encoding, &bytes, NULL) != IMAGE_FINE)
        return -ENOMEM;
    fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int error = file_write_all(fd, bytes.data, bytes.length);
    if (error)
        unlinkat(directory, name, 0);
    return error;
}
