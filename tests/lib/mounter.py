"""What a user may try against `dealfs mounter`: mounter.py ATTACK SOCKET [ARGUMENT…]. Status 0: it withstands."""
import ctypes
import errno
import os
import socket
import struct
import sys
import time

LOOK, MAKE, TMPFS, CONFIG, PUT, PROTECT, TAKE = range(7)
attack, path = sys.argv[1:3]


def connect():
    """A connection and the mounter's offer: its error, or 0."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    return s, struct.unpack_from("Ii", s.recv(16384))[1]


def enter():
    """A connection that may ask. The one before may not have ended yet."""
    while True:
        s, error = connect()
        if error == 0:
            return s
        assert error == -errno.EBUSY, error
        s.close()
        time.sleep(0.05)


def ask(s, verb, number=0, source=b"", given=()):
    """The answer's error and its descriptors."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(s, [struct.pack("IIQ4096s", verb, 0, number, source)], [theirs.fileno(), *given])
    theirs.close()
    message, fds, _, _ = socket.recv_fds(ours, 4096, 2)
    return struct.unpack_from("i", message)[0], fds


def word(error):
    return errno.errorcode[-error] if error else "0"


def garbage():
    s = enter()
    null = os.open("/dev/null", os.O_RDONLY)
    for size in (1, 15, 4111, 4113, 60000):
        s.send(os.urandom(size))
    for count in (1, 2, 3, 8, 200):
        socket.send_fds(s, [os.urandom(4112)], [null] * count)
    loop, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(loop, [b"x"], [other.fileno(), loop.fileno()])  # a descriptor in its own queue
    socket.send_fds(s, [b"x"], [loop.fileno(), other.fileno()])
    for verb in (7, 255, 1 << 31):
        assert ask(s, verb)[0] == -errno.EINVAL
    socket.send_fds(s, [struct.pack("IIQ4096s", LOOK, 0, 0, b"x" * 4096)], [null])  # a source without an end
    assert ask(s, LOOK)[0] == 0
    s.send(b"")  # is as good as hanging up


def answers():
    """It answers only on a SEQPACKET socket of its user. Each question is handled before the next one."""
    s = enter()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.connect(sys.argv[3])  # root listens there
    pairs = [socket.socketpair(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    read, write = os.pipe()
    for fd in [theirs.fileno() for _, theirs in pairs] + [write, listener.fileno()]:
        socket.send_fds(s, [struct.pack("IIQ4096x", LOOK, 0, 0)], [fd])
    assert ask(s, LOOK)[0] == 0
    for ours, _ in pairs:
        try:
            assert not ours.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
    print("done")


def crowd():
    first = enter()
    silent = []
    for _ in range(300):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(path)
        silent.append(s)
    assert ask(first, LOOK)[0] == 0
    for s in silent:
        assert struct.unpack_from("Ii", s.recv(16384))[1] == -errno.EBUSY
    first.close()
    enter()


def steps():
    s = enter()
    words = ["protect " + word(ask(s, PROTECT)[0]), "tmpfs " + word(ask(s, TMPFS, 1 << 50)[0]),
             "put " + word(ask(s, PUT)[0])]
    error, fds = ask(s, MAKE, source=b"a source")
    assert len(fds) == 2
    words.append("make " + word(error))
    words.append("make " + word(ask(s, MAKE, source=b"a source")[0]))
    words.append("config " + word(ask(s, CONFIG, given=[os.open("/etc/passwd", os.O_RDONLY)])[0]))
    print(", ".join(words))


def elsewhere():
    s = enter()
    assert ask(s, MAKE, source=b"a source")[0] == 0
    os.rmdir(sys.argv[3])
    os.symlink(sys.argv[4], sys.argv[3])
    leads_away = (-errno.ENOTDIR, -errno.ELOOP)
    error, _ = ask(s, PUT)
    assert error in leads_away, error
    s.close()
    while (error := connect()[1]) == -errno.EBUSY:
        time.sleep(0.05)
    assert error in leads_away, error


def keep():
    """With the keeper's own connection: nothing is to be taken away, neither now nor at the end."""
    getfd = 438
    fd = ctypes.CDLL(None).syscall(getfd, os.pidfd_open(int(sys.argv[3])), 19, 0)
    assert ask(socket.socket(fileno=fd), TAKE, 0)[0] == 0


globals()[attack]()
