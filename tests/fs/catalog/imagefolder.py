"""Random trees of tricky names: is our list `imagefolder` ImageFolder's list of samples, and are its labels the same?

usage: imagefolder.py LIST-SAMPLES DIRECTORY
Speaks TAP. Without torchvision its rule is followed by the few lines of make_dataset, and that is said.
"""

import os
import random
import subprocess
import sys

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

try:
    from torchvision.datasets import ImageFolder

    def expected(root):
        return ImageFolder(root).samples

    print("# against torchvision's ImageFolder")
except ImportError:

    def expected(root):
        samples = []
        for label, name in enumerate(sorted(entry.name for entry in os.scandir(root) if entry.is_dir())):
            for folder, _, names in sorted(os.walk(os.path.join(root, name), followlinks=True)):
                for file in sorted(names):
                    path = os.path.join(folder, file)
                    if path.lower().endswith(EXTENSIONS):
                        samples.append((path, label))
        return samples

    print("# torchvision is not installed: against a copy of its rule")

NAMES = ["a", "a-b", "a b", "a.b", "a0", "aa", "A", "B", "b", "~", "!", "\u00e9", "\u4e2d", "\ud7ff", "\ue000",
         "\uffee", "\U0001f600", "\u212a", "n\nl", "c\rr", "back\\slash", "n\\n"]
BYTES = [b"\xff", b"a\xff", b"\xe4\xb8", b"\x80", b"\xc3(", b"\xed\xa0\x80", b"a\xe9", b"\xf4\x90\x80\x80"]
ENDINGS = [".jpg", ".JPG", ".jpeg", ".JpEg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".TIFF", ".webp", ".txt", "jpg",
           ".jpgx", ".jpg ", "", ".t\u0130f", ".\u017fjpg"]


def name_of(rng, odd):
    if odd and rng.random() < 0.3:
        return rng.choice(BYTES)
    return "".join(rng.choice(NAMES) for _ in range(rng.randint(1, 2))).encode()


def write(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb"):
        pass


def fill(rng, folder, depth, odd):
    os.makedirs(folder, exist_ok=True)
    for _ in range(rng.randint(0, 6)):
        write_path = os.path.join(folder, name_of(rng, odd) + rng.choice(ENDINGS).encode())
        if not os.path.isdir(write_path):
            write(write_path)
    if depth:
        for _ in range(rng.randint(0, 4)):
            below = os.path.join(folder, name_of(rng, odd))
            if not os.path.lexists(below):
                fill(rng, below, depth - 1, odd)


def unescape(line):
    out, i = bytearray(), 0
    while i < len(line):
        if line[i] == 0x5C:
            i += 1
            out.append({0x6E: 0x0A, 0x72: 0x0D, 0x5C: 0x5C}[line[i]])
        else:
            out.append(line[i])
        i += 1
    return bytes(out)


def main():
    tool, directory = sys.argv[1], os.fsencode(sys.argv[2])
    rounds = 40
    print("1..%d" % rounds)
    failed = False
    for number in range(rounds):
        rng = random.Random(number)
        root = os.path.join(directory, b"source%d" % number)
        odd = number % 2 == 1
        for _ in range(rng.randint(1, 6)):
            top = os.path.join(root, name_of(rng, odd))
            fill(rng, top, 3, odd)
            write(os.path.join(top, b"always.png"))  # a class without images is an error
        write(os.path.join(root, b"at the root.jpg"))
        want = [(os.fsencode(path), label) for path, label in expected(os.fsdecode(root))]
        command = [tool, root, root + b".catalog", "imagefolder"]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        lines = [line.split(b" ", 1) for line in text.split(b"\n")[:-1]]
        got = [(os.path.join(root, unescape(path)), int(label)) for label, path in lines]
        good = got == want
        failed |= not good
        result, kind = "ok" if good else "not ok", " of odd names" if odd else ""
        print("%s %d - %d samples%s" % (result, number + 1, len(want), kind))
        if not good:
            for a, b in zip(got + [None] * len(want), want + [None] * len(got)):
                if a != b:
                    print("#   got      %r\n#   expected %r" % (a, b))
                    break
    return 1 if failed else 0


sys.exit(main())
