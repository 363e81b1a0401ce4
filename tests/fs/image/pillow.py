"""fs/image against Pillow, on photographs: pillow.py SHRINKER FOLDER PHOTOGRAPH…; speaks TAP."""
import io
import math
import os
import subprocess
import sys

import numpy
from PIL import Image

shrinker, folder, *photographs = sys.argv[1:]
count = 0


def ok(good, what):
    global count
    count += 1
    print('ok' if good else 'not ok', count, '-', what, flush=True)


def pixels(path, side):
    out = os.path.join(folder, 'pixels.pnm')
    subprocess.run([shrinker, 'pixels', str(side), '0', path, out], check=True)
    return numpy.asarray(Image.open(out)).astype(int)


def psnr(a, b):
    return 10 * math.log10(255 ** 2 / max(1e-9, ((a - b) ** 2).mean()))


def as_loaders_have_it(path):
    """A baseline JPEG of about 500 × 375, as most of ImageNet is."""
    small = os.path.join(folder, os.path.basename(path))
    image = Image.open(path).convert('RGB')
    image.thumbnail((500, 500), Image.LANCZOS, reducing_gap=3)
    image.save(small, quality=92)
    return small


for path in photographs:
    name = os.path.basename(path)
    small = as_loaders_have_it(path)
    for file, side in (path, 256), (small, 256), (small, 97):
        ours = pixels(file, side)
        image = Image.open(file).convert('RGB')
        theirs = image.resize((ours.shape[1], ours.shape[0]), Image.LANCZOS, reducing_gap=3)
        ratio = psnr(ours, numpy.asarray(theirs).astype(int))
        ok(ratio >= 35, f'{name} of {image.size[0]} × {image.size[1]} to {side}: {ratio:.1f} dB from Pillow\'s')
        size = tuple(int(x * side / min(image.size)) for x in image.size[::-1])
        ok(ours.shape[:2] == size, 'of the size it is to have')
    for file in small, path:
        most = abs(pixels(file, 0) - numpy.asarray(Image.open(file).convert('RGB')).astype(int)).max()
        ok(most <= 1, f'{name} is decoded to Pillow\'s pixels, within {most} levels')
print(f'1..{count}')
