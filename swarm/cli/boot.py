"""Loads what sending a message needs, and nothing else; run by ``bin/swarm`` before any package is imported.

Python's way to a module, over all the places where it might be, takes as long as the rest of sending.  So the modules
are kept together, compiled, in one file beside what Python keeps itself; it counts while they are what they were.
"""

import _imp
import _signal  # type: ignore[import-not-found]  # what `signal` is made of
import gc
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, ExtensionFileLoader, cache_from_source
from marshal import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, NoReturn

_PACKAGES = ("swarm", "swarm.cli", "swarm.domain", "swarm.pane", "swarm.store", "swarm.store.bus")
_MODULES = (
    "swarm.domain.plain",
    "swarm.pane.records",
    "swarm.pane.proc",
    "swarm.pane.whoami",
    "swarm.store.bus.lines",
    "swarm.cli.swift",
)
_LIBRARIES = ("fcntl", "_json")
#: The CRC-32 of each half of a byte; and how many bytes are summed up with these before zlib would be loaded.
_HALF = (0x0, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C)
_SUMS = (*_HALF, *(0xEDB88320 ^ one for one in _HALF))
_SHORT = 1500
_READ, _WRITE = posix.O_RDONLY | posix.O_CLOEXEC, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC


def run(home: str, beside: str, args: list[str], full: str = "") -> "NoReturn":
    """Do a command, and end.

    Args:
        home: where the package ``swarm`` is.
        beside: the folder of the programs.
        full: Python's words with which the full program is started.
    """
    gc.disable()
    code = _send(home, args) if args[:1] == ["send"] else _tell(home, args)
    if code is None:
        program = f"{beside}/swarm-full"
        if full:
            posix.execv(sys.executable, [sys.executable, "-P", "-S", "-c", full, program, *args])
        posix.execv(program, [program, *args])
    posix._exit(code)  # noqa: SLF001  # all is written; taking Python down well takes a while


def _send(home: str, args: list[str]) -> int | None:
    try:
        swift = load(home)
    except Exception:  # noqa: BLE001  # the full program will say what is wrong
        return None
    try:
        if callable(_signal.getsignal(_signal.SIGINT)):  # until now it would have ended us
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        code: int | None = swift.run(args)
    except BaseException as error:  # noqa: BLE001  # nothing leaves as a traceback
        code = swift.failed(error, args)
    return code


def _tell(home: str, args: list[str]) -> int | None:
    sys.path.insert(0, home)
    try:
        from swarm.cli.main import at_once

        return at_once(args)
    except Exception:  # noqa: BLE001  # the full program will say what is wrong
        return None


def load(home: str) -> "Any":
    """Return ``swift``, loaded with what it imports."""
    for name, content in (*((one, {}) for one in _PACKAGES), *_STAND_INS.items()):
        sys.modules[name] = type(sys)(name)
        sys.modules[name].__dict__.update(content)
    for name in _LIBRARIES:
        _load_library(name)
    module: Any = None
    for name, code in zip(_MODULES, _codes([f"{home}/{one.replace('.', '/')}.py" for one in _MODULES]), strict=True):
        above, _, last = name.rpartition(".")
        module = sys.modules[name] = sys.modules[above].__dict__[last] = type(sys)(name)
        exec(code, module.__dict__)  # noqa: S102  # our own
    module.release = release
    return module


def _load_library(name: str) -> None:
    """Load a compiled module from where Python usually has it; elsewhere it is searched for when it is imported."""
    path = f"{sys.path[-1]}/{name}{_imp.extension_suffixes()[0]}"
    spec = ModuleSpec(name, ExtensionFileLoader(name, path), origin=path)
    try:
        if name not in sys.builtin_module_names:
            module = _imp.create_dynamic(spec)
            _imp.exec_dynamic(module)
            sys.modules[name] = module
    except (ImportError, OSError):
        return


def release() -> None:
    """Let everything be imported as usual from now on."""
    for name in [name for name in sys.modules if name in _STAND_INS or name.partition(".")[0] == "swarm"]:
        del sys.modules[name]
    import site

    site.main()


# --- compiled code ------------------------------------------------------------------------------------


def _codes(paths: list[str]) -> "tuple[CodeType, ...]":
    """Return the code of modules, compiled before if it is of these very files."""
    stamp = MAGIC_NUMBER
    for path in paths:
        info = posix.stat(path)
        stamp += b"%d %d %d\n" % (info.st_mtime_ns, info.st_size, info.st_ino)
    kept = cache_from_source(paths[-1]) + ".all"
    try:
        data = _content(kept)
        if data.startswith(stamp):
            codes: tuple[CodeType, ...] = loads(memoryview(data)[len(stamp) :])  # noqa: S302  # our own
            return codes
    except (OSError, EOFError, ValueError):
        pass
    codes = tuple(compile(_content(path), path, "exec", dont_inherit=True, optimize=2) for path in paths)
    _keep(kept, stamp + dumps(codes))
    return codes


def _content(path: str) -> bytes:
    fd = posix.open(path, _READ)
    try:
        return posix.read(fd, 1 << 20)
    finally:
        posix.close(fd)


def _keep(path: str, data: bytes) -> None:
    """Write the file, where that is allowed; all of it or nothing."""
    new = f"{path}.{posix.getpid()}"
    try:
        fd = posix.open(new, _WRITE, 0o644)
        try:
            whole = posix.write(fd, data) == len(data)
        finally:
            posix.close(fd)
        if whole:
            posix.rename(new, path)
        else:
            posix.unlink(new)
    except OSError:
        return


# --- instead of libraries --------------------------------------------------------------------------------


def crc32(data: bytes) -> int:
    """Return what ``zlib.crc32`` does, which takes longer to load than this for one short record."""
    if len(data) > _SHORT:
        del sys.modules["zlib"]
        import zlib

        sys.modules["swarm.store.bus.lines"].__dict__["crc32"] = zlib.crc32
        return zlib.crc32(data)
    total = 0xFFFFFFFF
    sums = _SUMS
    for one in data:
        total = sums[(total ^ one) & 15] ^ (total >> 4)
        total = sums[(total ^ (one >> 4)) & 15] ^ (total >> 4)
    return total ^ 0xFFFFFFFF


_STAND_INS: "dict[str, dict[str, Any]]" = {"__future__": {"annotations": None}, "zlib": {"crc32": crc32}}
