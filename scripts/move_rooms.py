#!/usr/bin/env python3
"""Moves the rooms of ROOT to the floor plan of nine: move_rooms.py ROOT. Run once in a clean
checkout, then commit; no line of code changes but includes."""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
def git(*a): return subprocess.run(["git", "-C", str(ROOT), *a], check=True, capture_output=True, text=True).stdout

NINE = ["base", "coco", "dataflow", "models", "trainer", "tools", "callbacks", "plugins", "cli"]
ROOMS = {  # old room: new folder
    "engine": "dataflow/engine", "storage": "dataflow/store/remote",
    "weights": "models/weights", "onnx": "models/onnx", "detector": "models/detector",
    "export": "models/export", "predict": "models/predict",
    "page": "tools/report/page", "report": "tools/report", "study": "tools/study",
    "formats": "tools/formats", "doctor": "tools/data", "advice": "tools/data/advice",
    "migration": "tools/migration", "video": "tools/video"}
TESTS = {
    "engine": "dataflow/engine", "storage": "dataflow/remote",
    "weights": "models/weights", "onnx": "models/onnx", "export": "models/export", "predict": "models/predict",
    "rtdetr": "plugins/rtdetr", "yolox": "plugins/yolox", "cuda": "plugins/cuda",
    "page": "tools/page", "report": "tools/report", "study": "tools/study", "formats": "tools/formats",
    "doctor": "tools/data", "advice": "tools/advice", "migration": "tools/migration", "video": "tools/video"}
FILES = {  # single files: old name below millrace/: new
    "coco/analysis/report_page": "tools/report/report_page", "coco/analysis/report_charts": "tools/report/report_charts",
    "coco/drawing/page_picture": "tools/report/page_picture"}

here = [r for r in ROOMS if (ROOT / "millrace" / r).is_dir()]
tests_here = [t for t in TESTS if (ROOT / "tests" / t).is_dir()]
# move: nested targets that exist already are merged by moving entries
def move(old, new):
    old, new = ROOT / old, ROOT / new
    if not old.exists(): return
    new.parent.mkdir(parents=True, exist_ok=True)
    if new.is_dir():
        for child in sorted(old.iterdir()): move(child.relative_to(ROOT), new.relative_to(ROOT) / child.name)
    else:
        git("mv", str(old.relative_to(ROOT)), str(new.relative_to(ROOT)))
for room in NINE:
    if (ROOT / "millrace" / room).is_dir(): move(f"millrace/{room}", room)
for room in here: move(f"millrace/{room}", ROOMS[room])
for stem, new in FILES.items():
    for ext in (".h", ".cpp"):
        if (ROOT / (stem + ext)).exists(): move(stem + ext, new + ext)
for t in tests_here: move(f"tests/{t}", f"tests/{TESTS[t]}")
left = git("ls-files", "millrace")
if left: sys.exit("left in millrace/: " + left)

every = "|".join(sorted({*NINE, *ROOMS}, key=len, reverse=True))
def room_to(name): return ROOMS.get(name, name)
def single(path):  # after the room map
    for stem, new in FILES.items(): path = re.sub(rf"\b{re.escape(stem)}(?=\.(h|cpp))", new, path)
    return path
INCLUDE = re.compile(rf'(["<])millrace/({every})(/[^">]*[">])')
def include(m): return m[1] + "millrace/" + single(room_to(m[2]) + m[3])
PATH = re.compile(rf'(?P<pre>^|[\s(\[`\'",*]|\]\(|\.\./|\$\{{PROJECT_SOURCE_DIR\}}/|\$\{{CMAKE_CURRENT_LIST_DIR\}}/\.\./)millrace/(?P<room>{every})(?P<rest>[\w./]*)', re.M)
def path(m, md):
    bare = md and m["pre"] not in ("../",) and not m["pre"].endswith("../") and m["rest"].endswith(".h")
    return m["pre"] + ("millrace/" if bare else "") + single(room_to(m["room"]) + m["rest"])
TEST = re.compile(rf'\btests/({"|".join(sorted(TESTS, key=len, reverse=True))})\b(?!_)')

changed = 0
for name in git("ls-files", "-z").split("\0"):
    if not name or name in ("scripts/check_rooms.py", "tests/house/checks_test.py") or name.startswith("docs/decisions/0021"): continue
    file = ROOT / name
    if file.is_symlink() or not file.is_file(): continue
    data = file.read_bytes()
    if b"\0" in data or b"millrace/" not in data and b"tests/" not in data: continue
    try: text = old = data.decode()
    except UnicodeDecodeError: continue
    text = INCLUDE.sub(include, text)
    if name == "cmake/public_headers.cmake":
        text = re.sub(rf"^(  )millrace/({every})(/\S+\.h)$", lambda m: m[1] + "millrace/" + single(room_to(m[2]) + m[3]), text, flags=re.M)
    elif file.suffix not in (".h", ".cpp", ".cu", ".cuh"):
        text = PATH.sub(lambda m: path(m, file.suffix in (".md", ".ipynb")), text)
    text = TEST.sub(lambda m: "tests/" + TESTS[m[1]], text)
    if text != old:
        file.write_bytes(text.encode()); changed += 1
print(changed, "files rewritten")

def edit(name, *pairs, optional=False):
    file = ROOT / name
    text = file.read_text()
    for a, b in pairs:
        if a not in text:
            if optional: continue
            sys.exit(f"{name}: not found: {a[:90]!r}")
        text = text.replace(a, b)
    file.write_text(text)

def subdirectories(name, rooms, line="add_subdirectory({})\n", first=False):
    file = ROOT / name
    text = file.read_text() if file.exists() else ""
    add = "".join(line.format(r) for r in rooms)
    file.write_text(add + text if first else text + add)

have = lambda p: (ROOT / p / "CMakeLists.txt").exists()
# Source rooms: nested folders first, in the order of the arrows.
subdirectories("dataflow/CMakeLists.txt", [r for r in ("store/remote", "engine") if have("dataflow/" + r)], first=True)
subdirectories("models/CMakeLists.txt", [r for r in ("weights", "onnx", "detector") if have("models/" + r)], first=True)
subdirectories("models/CMakeLists.txt", [r for r in ("export", "predict") if have("models/" + r)])
tools = [r for r in ("migration", "report/page", "report", "study", "formats", "data", "data/advice", "video") if have("tools/" + r)]
(ROOT / "tools/CMakeLists.txt").write_text("# What reads files of runs, data sets and other tools: no trainer, no models.\n" + "".join(f"add_subdirectory({r})\n" for r in tools))
(ROOT / "cmake/rooms.cmake").write_text('''# The nine rooms, in the order of their arrows (docs/architecture.md), and the folder from which
# everything includes them as "millrace/ROOM/...": one link a room.
set(MILLRACE_ROOMS base coco dataflow models trainer tools callbacks plugins cli)
set(MILLRACE_INCLUDE ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${MILLRACE_INCLUDE}/millrace)
foreach(room IN LISTS MILLRACE_ROOMS)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${room} ${MILLRACE_INCLUDE}/millrace/${room} SYMBOLIC)
endforeach()
''')
top = (ROOT / "CMakeLists.txt").read_text()
top = top.replace("include(millrace)\n", "include(rooms)\ninclude(millrace)\n", 1)
top = re.sub(r"  foreach\(room base storage engine[^)]*\)\n    add_subdirectory\((?:millrace/)?\$\{room\} EXCLUDE_FROM_ALL\)",
             "  foreach(room base coco dataflow)\n    add_subdirectory(${room} EXCLUDE_FROM_ALL)", top)
top = re.sub(r"(# The rooms, in the order[^\n]*\n)foreach\(room [^)]*\)\n  add_subdirectory\(millrace/\$\{room\}\)", r"\1foreach(room IN LISTS MILLRACE_ROOMS)\n  add_subdirectory(${room})", top)
top = re.sub(r"    add_subdirectory\(tests/python\)\n  endif\(\)\n.*?  endforeach\(\)\nendif\(\)", "  endif()\n  add_subdirectory(tests)\nendif()", top, flags=re.S)
top = re.sub(r"  add_subdirectory\(tools/report/page\)\n", "", top)
(ROOT / "CMakeLists.txt").write_text(top)

order = ["house", "base", "coco", "dataflow", "models", "trainer", "callbacks", "tools", "plugins", "parity", "cli",
         "faults", "launch", "end_to_end", "bench", "examples", "install", "docs"]
def with_tests(folder): 
    return [d.name for d in sorted((ROOT / folder).iterdir()) if d.is_dir()]
inner = {"dataflow": ["engine", "remote"], "models": ["weights", "onnx", "export", "predict"],
         "tools": ["migration", "page", "report", "study", "formats", "data", "advice", "video"], "plugins": ["cuda", "rtdetr", "yolox"]}
for room, names in inner.items():
    names = [n for n in names if have(f"tests/{room}/{n}")]
    subdirectories(f"tests/{room}/CMakeLists.txt", names)
(ROOT / "tests/CMakeLists.txt").write_text('''# Tests of the rooms, in their order, then those of several together.
include_directories(${PROJECT_SOURCE_DIR} ${MILLRACE_INCLUDE})  # "tests/...", "millrace/..."
if(EXISTS ${Python_EXECUTABLE})
  add_subdirectory(python)
endif()
foreach(room ''' + " ".join(order) + ''')
  add_subdirectory(${room})
endforeach()
''')

for name in git("ls-files", "-o", "-c", "--exclude-standard", "*CMakeLists.txt", "*.cmake").split():
    file = ROOT / name
    if not file.is_file(): continue
    text = old = file.read_text()
    if name.startswith("tests/"):
        text = re.sub(r"^ *target_include_directories\(\S+ (?:PRIVATE|PUBLIC) \$\{PROJECT_SOURCE_DIR\}\)\n", "", text, flags=re.M)
    else:
        text = re.sub(r"(target_include_directories\(\S+ (?:PRIVATE|PUBLIC)) \$\{PROJECT_SOURCE_DIR\}\)", r"\1 ${MILLRACE_INCLUDE})", text)
    text = text.replace("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)", "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${MILLRACE_INCLUDE}/=)")
    if text != old: file.write_text(text)

edit("cmake/millrace.cmake",
     ("${PROJECT_SOURCE_DIR}/tests/${name}_test.cpp", "${file}_test.cpp"),
     ('''  string(REPLACE "/" "_" target ${name}_test)\n''', '''  string(REPLACE "/" "_" target ${name}_test)\n  get_filename_component(file ${name} NAME)\n'''),
     ("# add_unit_test(ROOM/NAME LINKS ... [SLOW]): tests/ROOM/NAME_test.cpp as one test program.",
      "# add_unit_test(ROOM/NAME LINKS ... [SLOW]): NAME_test.cpp of this folder as one test program."))
edit("plugins/CMakeLists.txt",
     ("PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE", "PREPEND ${MILLRACE_INCLUDE}/ OUTPUT_VARIABLE"),
     ("-DROOTS=${PROJECT_SOURCE_DIR}", "-DROOTS=${MILLRACE_INCLUDE}"),
     ("$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>", "$<BUILD_INTERFACE:${MILLRACE_INCLUDE}>"),
     ("FILES ${PROJECT_SOURCE_DIR}/${header}", "FILES ${MILLRACE_INCLUDE}/${header}"))
install = (ROOT / "cmake/install.cmake").read_text()
install = re.sub(r"foreach\(header \S+/errors\.h \S+/masks\.h\n\s+\S+/detected_object\.h", "foreach(header millrace/base/errors.h millrace/coco/masks/masks.h\n               millrace/models/detector/detected_object.h", install)
install = install.replace("install(FILES ${header} DESTINATION include/${folder} COMPONENT predict)", "install(FILES ${MILLRACE_INCLUDE}/${header} DESTINATION include/${folder} COMPONENT predict)")
(ROOT / "cmake/install.cmake").write_text(install)
py = (ROOT / "python/CMakeLists.txt").read_text()
py = py.replace("  target_include_directories(${name} SYSTEM", "  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})  # \"python/src/...\"\n  target_include_directories(${name} SYSTEM", 1)
(ROOT / "python/CMakeLists.txt").write_text(py)

# Folders and arrows.
rooms_py = (ROOT / "scripts/check_rooms.py").read_text()
block = re.search(r"^FOLDERS = (\{.*?^\})", rooms_py, re.S | re.M)
old = eval(block[1])
def moved(folder):
    if folder.startswith("python/"): return folder
    first, _, rest = folder.partition("/")
    return room_to(first) + ("/" + rest if rest else "")
new = {}
for folder, below in old.items():
    new.setdefault(moved(folder), []).extend(b for b in map(moved, below))
# what single files brought along
if "tools/report" in new and (ROOT / "tools/report/report_page.cpp").exists():
    new["tools/report"] += ["coco/analysis", "tools/report/page"]
    new["coco/analysis"] = [b for b in new["coco/analysis"] if "page" not in b]
groups = NINE + ["python"]
new = dict(sorted(new.items(), key=lambda item: groups.index(item[0].split("/")[0])))
lines = ["{"]
for folder, below in new.items():
    below = sorted(set(below) - {folder})
    line = f'    "{folder}": [' + ", ".join(f'"{b}"' for b in below) + "],"
    if len(line) > 100:
        pad = " " * (len(folder) + 9)
        parts, current = [], f'    "{folder}": ['
        for i, b in enumerate(below):
            piece = f'"{b}"' + (", " if i + 1 < len(below) else "],")
            if len(current) + len(piece.rstrip()) > 100:
                parts.append(current.rstrip()); current = pad
            current += piece
        parts.append(current); line = "\n".join(parts)
    lines.append(line)
rooms_py = rooms_py.replace(block[1], "\n".join(lines + ["}"]))
rooms_py = rooms_py.replace("# The folders of millrace/ and those of the Python modules, lowest first,", "# The folders of the rooms and those of the Python modules, lowest first,")
rooms_py = rooms_py.replace("""INCLUDE = re.compile(""", """ROOMS = ("base", "coco", "dataflow", "models", "trainer", "tools", "callbacks", "plugins", "cli")

INCLUDE = re.compile(""", 1)
rooms_py = rooms_py.replace("""    for top in ("millrace", "python", "tests"):""", """    for top in (*ROOMS, "python", "tests"):""")
rooms_py = rooms_py.replace("""    for file in sorted([*(root / "millrace").rglob("*"), *(root / "python").rglob("*")]):""",
 """    for file in sorted(file for top in (*ROOMS, "python") for file in (root / top).rglob("*")):""")
rooms_py = rooms_py.replace("""        folder = name.parent.as_posix().removeprefix("millrace/")""", """        folder = name.parent.as_posix()""")
rooms_py = rooms_py.replace("""            if found and name.as_posix() in public and""", """            if found and f"millrace/{name}" in public and""")
(ROOT / "scripts/check_rooms.py").write_text(rooms_py)
test = (ROOT / "tests/house/checks_test.py").read_text()
test = test.replace('self.write("millrace/base/files.h"', 'self.write("base/files.h"').replace('self.write("millrace/trainer', 'self.write("trainer')
test = test.replace("\\n  millrace/engine/plan.h", "\\n  millrace/dataflow/engine/plan.h").replace('"millrace/engine/plan.h\\"', '"millrace/dataflow/engine/plan.h\\"')
test = test.replace('#include "millrace/engine/plan.h"', '#include "millrace/dataflow/engine/plan.h"')
test = test.replace('("millrace/base/files.h", ', '("base/files.h", ').replace('"millrace/base/files.h:2: \'base\' may not include \'engine\'"', '"base/files.h:2: \'base\' may not include \'dataflow/engine\'"')
test = test.replace('("millrace/coco/masks/rle.cpp"', '("coco/masks/rle.cpp"').replace('("millrace/engine/plan.h", ', '("dataflow/engine/plan.h", ')
test = test.replace('"millrace/engine/plan.h:1: a public', '"dataflow/engine/plan.h:1: a public')
test = test.replace('("millrace/attic/old.cpp"', '("base/attic/old.cpp"').replace('"millrace/attic/old.cpp:1', '"base/attic/old.cpp:1')
test = test.replace("'millrace/base/files.h:1: HTML in C++'", "'base/files.h:1: HTML in C++'").replace('"millrace/base/files.h:1: HTML in C++"', '"base/files.h:1: HTML in C++"')
(ROOT / "tests/house/checks_test.py").write_text(test)
edit("scripts/relink_pages.py", ('[prefix / "include", prefix', '[prefix / "include/millrace", prefix'))
# Parts of pages that lie in tools/report from now on.
coco = (ROOT / "coco/CMakeLists.txt").read_text()
if (ROOT / "tools/report/report_page.cpp").exists():
    coco = re.sub(r" *analysis/report_charts\.cpp analysis/report_page\.cpp", "", coco).replace(" millrace::page", "").replace(" drawing/page_picture.cpp", "")
    (ROOT / "coco/CMakeLists.txt").write_text(coco)
    edit("tools/report/CMakeLists.txt", ("SOURCES head_section", "SOURCES page_picture.cpp report_charts.cpp report_page.cpp head_section"))
    (ROOT / "tools/CMakeLists.txt").write_text((ROOT / "tools/CMakeLists.txt").read_text())
import shutil
shutil.rmtree(ROOT / "millrace", ignore_errors=True)
sources = git("ls-files", "-z", "*.h", "*.cpp", "*.cu", "*.cuh").split("\0")[:-1]
for i in range(0, len(sources), 200):
    subprocess.run(["clang-format", "-i", *sources[i:i+200]], cwd=ROOT, check=True)

page = (ROOT / "docs/architecture.md").read_text()
begin = page.index("callbacks see everything and may stop it.")
end = page.index("Where does a file go?")
page = page[:begin] + """callbacks see everything and may stop it. The code lies in nine folders (*rooms*) at the top of the tree. Arrows between rooms, and between the folders of a room, point one way:
[scripts/check_rooms.py](../scripts/check_rooms.py) lists them, and `make lint` and a test check the includes.

    base <- coco <- dataflow <- models <- trainer <- callbacks <- plugins <- cli
                       \\---- tools <-----------------/----------------------/

| room | holds | folders, lowest first |
|---|---|---|
| [base](../base) | Configuration, typed options, registry, errors, log, random streams; files, child processes, signals, events. | process, disk, events |
| [coco](../coco) | COCO annotations and masks, the evaluator and its analysis, pictures of boxes and masks, the generated sample data set. | masks, data, picture, drawing, evaluation, analysis, sample |
| [dataflow](../dataflow) | The data flow: `engine` runs any messages over oneTBB and knows no image; above it images, samples, sources, stages, stores on disk or behind HTTP, and batches over ZeroMQ ([serving.md](serving.md)). | engine, image, detection, store, sources, stages, serving |
| [models](../models) | The contract of a detector (`detector`), weights of all formats, ONNX, operators, layers, backbones, Mask R-CNN and its relatives, RetinaNet, export, and the predictor library. | weights, onnx, detector, ops, layers, backbones, maskrcnn, retinanet, export, predict |
| [trainer](../trainer) | The training loop and the interfaces it calls; it knows no callback and no detector by name. | cluster (MPI), optimizer, checkpoint, evaluation, run |
| [callbacks](../callbacks) | One idea a file: progress, log, evaluate, checkpoint, pictures. | common |
| [plugins](../plugins) | The loader of shared objects and their ABI; the CUDA kernels; YOLOX and RT-DETR, which include public headers only. | cuda, rtdetr, yolox |
| [tools](../tools) | Reads data sets and run folders: label formats, checks and statistics of data, reports, videos. Includes neither trainer nor models. | formats, data, report, video |
| [cli](../cli) | The commands, one file each. `trainer` starts at once and hands what needs libtorch to `trainer-torch` ([decision 0008](decisions/0008-two-programs.md)). | commands |

[python/](../python) is the Python package: typed Python over the modules `_coco` and `_flow` ([decision 0027](decisions/0027-python-package.md)). Includes keep the prefix of installed headers, `"millrace/ROOM/..."`:
the build makes one link for each room ([cmake/rooms.cmake](../cmake/rooms.cmake), [decision 0038](decisions/0038-nine-rooms.md)).

""" + page[end:]
(ROOT / "docs/architecture.md").write_text(page)
(ROOT / "docs/decisions/0038-nine-rooms.md").write_text("""# 0038: Nine rooms at the top

**Introduction.** Twenty-four rooms lay in one folder, `millrace/`. The names that the project is known by (dataflow, trainer, callbacks, models, plugins) stood one level down among twenty others, and a newcomer had to read all of them to learn which belong together.

**Proposal.** Nine rooms lie at the top of the tree: base, coco, dataflow, models, trainer, callbacks, plugins, tools, cli. What was a room of its own and serves one of them is a folder in it: engine and remote stores in dataflow; detector, weights, onnx, export and predict in models; formats, data checks, reports and video in tools. Training writes run folders and JSON, tools read them: tools includes neither trainer nor models.

The include prefix stays `millrace/`. The build makes a folder of links, `BUILD/include/millrace/ROOM` to `ROOM`, so that sources, plug-ins in the tree and installed headers all say `millrace/dataflow/engine/stage.h`.

**Alternatives.** Sources below `src/`: one level more for nothing. One link to the root of the tree: it would contain itself.

**Open questions.** None. It replaces the layout of [decision 0021](0021-rooms-within-rooms.md); the list of public headers and the limit of 40 files a folder stay.
""")
edit(".vscode/tasks.json", ("tests/ROOM of a file in millrace/ROOM or tests/ROOM", "tests/ROOM of a file in ROOM or tests/ROOM"),
     ("room=$(printf %s '${relativeFile}' | cut -d/ -f2);", "room=$(printf %s '${relativeFile}' | sed 's,^tests/,,' | cut -d/ -f1);"))

edit("docs/decisions/README.md", ("the RPN predicts the anchors of its loss once more |\n", "the RPN predicts the anchors of its loss once more |\n| [0038](0038-nine-rooms.md) | nine rooms at the top of the tree; includes keep the prefix millrace/ through links that the build makes |\n"))
edit("tests/bench/yolox_step.py", ("(see tests/plugins/yolox/reference.py); without it there is nothing to\n", "(see tests/plugins/yolox/reference.py); without it there is nothing\nto "))
make = (ROOT / "Makefile").read_text()
make = re.sub(r"(rooms='[^']*)\bdoctor\b", r"\1data", make)
(ROOT / "Makefile").write_text(make)
