"use strict";
/* Draws the page's data. A view is one launch of one page's data: {page, launch}. */

const SECTOR = 32, LINE = 128, WORD = 4, BANKS = 32, LANES = 32;
const SVG = "http://www.w3.org/2000/svg";

/* ---- Elements and numbers ---- */

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else if (value !== null && value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? "" : value);
        }
    }
    element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
    return element;
}

const h = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);

function text(x, y, words, name, title) {
    const label = s("text", {x, y, class: name || null}, String(words));
    if (title) {
        label.append(s("title", {}, title));
    }
    return label;
}

/* 1234567 is "1.23 M". */
function short(value) {
    const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    for (const [size, letter] of units) {
        if (Math.abs(value) >= size * (size === 1e3 ? 10 : 1)) {
            return (value / size).toPrecision(3) + " " + letter;
        }
    }
    return Number.isInteger(value) ? String(value) : value.toPrecision(3);
}

const exact = (value) => Number(value).toLocaleString("en-US");
const percent = (share) => (100 * share).toFixed(share < 0.0995 && share > 0 ? 1 : 0) + "%";
const micros = (ns) => (ns / 1e3).toPrecision(ns < 1e6 ? 3 : 4) + " µs";
const sum = (list) => list.reduce((all, one) => all + one, 0);
const product = (list) => list.reduce((all, one) => all * one, 1);
const times = (list) => list.filter((one, at) => at === 0 || product(list.slice(at)) > 1).join(" × ");
const plural = (count, word) => exact(count) + " " + word + (count === 1 ? "" : "s");

/* "void tile<(int)128>(float*, int)" becomes "tile<128>". */
function shortName(kernel) {
    let name = kernel.replace(/^void /, "").replace(/\(anonymous namespace\)::/g, "")
        .replace(/\((int|bool|unsigned int)\)/g, "");
    let depth = 0;
    for (let at = 0; at < name.length; at++) {
        depth += (name[at] === "<") - (name[at] === ">");
        if (name[at] === "(" && depth === 0) {
            name = name.slice(0, at);
        }
    }
    return name;
}

/* ---- What a request looks like ---- */

/* [{lane, at}] of the active lanes; `at` in bytes from the allocation's begin, or in the space. */
function addressesOf(access) {
    const list = [];
    for (let lane = 0; lane < LANES; lane++) {
        if ((access.of.mask >>> lane & 1) === 1) {
            list.push({lane, at: access.of.first + access.relative[lane]});
        }
    }
    return list;
}

/* The lines of 128 bytes that a request touches: [{line, words: [lanes of word 0], ...}]. */
function linesOf(access) {
    const lines = new Map();
    for (const {lane, at} of addressesOf(access)) {
        const last = Math.floor((at + access.of.bytes - 1) / WORD);
        for (let word = Math.floor(at / WORD); word <= last; word++) {
            const line = Math.floor(word * WORD / LINE);
            if (!lines.has(line)) {
                lines.set(line, Array.from({length: LINE / WORD}, () => []));
            }
            lines.get(line)[word - line * LINE / WORD].push(lane);
        }
    }
    return [...lines].map(([line, words]) => ({line, words})).sort((a, b) => a.line - b.line);
}

function sectorsOf(access) {
    const sectors = new Set();
    for (const {at} of addressesOf(access)) {
        for (let sector = Math.floor(at / SECTOR);
             sector <= Math.floor((at + access.of.bytes - 1) / SECTOR); sector++) {
            sectors.add(sector);
        }
    }
    return sectors.size;
}

/* Two groups go together when lanes pair up in both, as in a broadcast (pattern.c). */
function lanesPairUp(units, lanes) {
    return [1, 2].some((distance) => lanes.every(
        (lane) => !lanes.includes(lane ^ distance) || units[lane ^ distance] === units[lane]));
}

/* Groups of lanes that shared memory serves together: 128 bytes at a time. */
function groupsOf(access, units) {
    const size = Math.min(LANES, BANKS * WORD / access.of.bytes);
    const active = addressesOf(access).map(({lane}) => lane);
    const groups = [];
    for (let begin = 0; begin < LANES; begin += 2 * size) {
        const low = active.filter((lane) => lane >= begin && lane < begin + size);
        const high = active.filter((lane) => lane >= begin + size && lane < begin + 2 * size);
        groups.push(...(size < LANES && lanesPairUp(units, [...low, ...high])
            ? [[...low, ...high]] : [low, high]));
    }
    return groups.filter((group) => group.length > 0);
}

/* The wavefronts of a request to shared memory: [[lanes at bank 0], ...] of each. */
function wavefrontsOf(access) {
    const unit = Math.max(WORD, access.of.bytes);
    const units = [];
    for (const {lane, at} of addressesOf(access)) {
        units[lane] = Math.floor(at / unit);
    }
    const rows = [];
    for (const group of groupsOf(access, units)) {
        const banks = new Map(); /* bank: its different units, in the order of lanes */
        const base = rows.length;
        for (const lane of group) {
            const bank = units[lane] % (BANKS * WORD / unit);
            const there = banks.get(bank) || [];
            const row = there.includes(units[lane]) ? there.indexOf(units[lane])
                                                    : there.push(units[lane]) - 1;
            banks.set(bank, there);
            while (rows.length <= base + row) {
                rows.push(Array.from({length: BANKS}, () => []));
            }
            for (let word = 0; word < unit / WORD; word++) {
                rows[base + row][bank * (unit / WORD) + word].push(lane);
            }
        }
    }
    return rows;
}

/* ---- Pictures of requests ---- */

const CELL = 21, ROW = 20, LEFT = 92;

function lanesTitle(lanes, access) {
    const where = lanes.slice(0, 8).map(
        (lane) => "lane " + lane + " at byte " + exact(access.of.first + access.relative[lane]));
    return where.join(", ") + (lanes.length > 8 ? " and " + (lanes.length - 8) + " more" : "");
}

/* Cells of one row: which lanes touch each of 32 words. */
function drawCells(words, y, access, tinted) {
    return words.map((lanes, n) => {
        const name = lanes.length > 0 ? "hit" : tinted(n) ? "touched" : "empty";
        const x = LEFT + n * CELL + (access.of.space === "global" ? Math.floor(n / 8) * 4 : 0);
        const label = lanes.length > 1 ? "×" + lanes.length : lanes[0];
        const size = lanes.length > 1 ? "lane many" : "lane";
        const cell = s("g", {}, s("rect", {x, y, width: CELL - 2, height: ROW - 4, rx: 2, class: name}));
        if (lanes.length > 0) {
            cell.append(text(x + CELL / 2 - 1, y + 12, label, size),
                        s("title", {}, lanesTitle(lanes, access)));
        }
        return cell;
    });
}

function drawGrid(rows, label, access, header, tinted, words) {
    const width = LEFT + 32 * CELL + 16, top = 18;
    const svg = s("svg", {width, height: top + rows.length * ROW, role: "img", "aria-label": words,
                          viewBox: "0 0 " + width + " " + (top + rows.length * ROW)}, header);
    rows.forEach((row, n) => {
        const y = top + n * ROW;
        svg.append(text(LEFT - 8, y + 12, label(row, n), "soft end"));
        svg.append(...drawCells(row.words || row, y, access, (word) => tinted(row, word)));
    });
    return h("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": words}, svg);
}

function drawGlobal(access) {
    const lines = linesOf(access);
    const header = [0, 1, 2, 3].map(
        (sector) => text(LEFT + sector * (8 * CELL + 4) + 4 * CELL, 11, "sector " + sector, "soft middle"));
    const touched = (row, word) => row.words.slice(word - word % 8, word - word % 8 + 8)
        .some((lanes) => lanes.length > 0);
    const words = plural(sectorsOf(access), "sector") + " of " + plural(lines.length, "line") + " of 128 bytes";
    return drawGrid(lines, (row) => "byte " + exact(row.line * LINE), access, header, touched, words);
}

function drawShared(access) {
    const rows = wavefrontsOf(access);
    const header = Array.from({length: BANKS}, (_, bank) =>
        text(LEFT + bank * CELL + CELL / 2 - 1, 11, bank, "soft middle"));
    header.push(text(LEFT - 8, 11, "bank", "soft end"));
    return drawGrid(rows, (row, n) => "wavefront " + (n + 1), access, header, () => false,
                    plural(rows.length, "wavefront") + " over 32 banks");
}

function explainAccess(access) {
    const of = access.of, unit = access.space === "shared" ? "wavefront" : "sector";
    const lanes = addressesOf(access).length;
    const where = "warp " + of.warp + " of block " + exact(of.block) + ": " + plural(lanes, "lane") +
        " of " + plural(of.bytes, "byte") + " each. ";
    const cost = plural(of.cost, unit) + ", " + of.least + " would do.";
    return h("figcaption", {}, h("strong", {}, access.space + " " + access.kind + ", "), where,
             h("span", {class: of.cost > of.least ? "bad" : null}, cost), " ",
             h("span", {class: "soft"}, whyAccess(access, lanes)));
}

function whyAccess(access, lanes) {
    const of = access.of;
    if (access.space === "global" && of.cost > of.least) {
        return "It moves " + exact(of.cost * SECTOR) + " bytes; its lanes ask for " +
            exact(lanes * of.bytes) + ". Neighbouring lanes should touch neighbouring bytes.";
    }
    if (access.space === "shared" && of.cost > of.least) {
        return "Lanes that touch different words of one bank wait for each other: a " +
            Math.round(of.cost / of.least) + "-way bank conflict.";
    }
    return access.space === "local" ? "Local memory is interleaved: word n of all lanes lies side " +
        "by side." : "";
}

function drawAccess(access) {
    const drawn = Object.assign({}, access, {of: Object.assign({}, access.of, {space: access.space})});
    const picture = access.space === "global" ? drawGlobal(drawn)
        : access.space === "shared" ? drawShared(drawn) : null;
    return h("figure", {}, explainAccess(access), picture);
}

/* ---- Source lines ---- */

const total = (line) => sum(line.stall);

function stack(stall, page, of) {
    return h("span", {class: "stack", "aria-hidden": "true"}, stall.map((share, n) =>
        h("i", {style: "width:" + (100 * share / of).toFixed(2) + "%;background:var(--s" + n + ")",
                title: page.stalls[n][1] + ": " + percent(share)})));
}

function legend(page) {
    return h("ul", {class: "legend"}, page.stalls.map(([name, words], n) =>
        h("li", {title: words}, h("i", {style: "background:var(--s" + n + ")"}), name)));
}

const excess = (line, unit) => line.of[unit] > line.of["least_" + unit];

/* "1.2 M of 401 k" in two units: what it took, what would do. */
function costCell(line, unit) {
    const took = line.of[unit], least = line.of["least_" + unit];
    if (took === 0) {
        return h("td", {class: "none"});
    }
    return h("td", {"data-name": unit, title: exact(took) + " " + unit + ", " + exact(least) + " would do"},
             h("span", {class: excess(line, unit) ? "bad" : null}, short(took)),
             h("span", {class: "soft"}, " / " + short(least)));
}

function countCells(line, view, most) {
    const lanes = line.of.lanes / line.of.instructions;
    return [
        h("td", {"data-name": "warp instructions", title: exact(line.of.instructions) +
            " warp instructions, " + lanes.toFixed(1) + " lanes active on average"},
          short(line.of.instructions)),
        costCell(line, "sectors"), costCell(line, "wavefronts"),
        h("td", {"data-name": "time"}, stack(line.stall, view.page, most), " ",
          h("span", {class: "share"}, total(line) < 0.0005 ? "" : percent(total(line)))),
    ];
}

function describeStalls(line, view) {
    const parts = line.stall.map((share, n) => [share, view.page.stalls[n][1]])
        .filter(([share]) => share >= 0.005).sort((a, b) => b[0] - a[0]);
    return h("ul", {}, parts.map(([share, words]) => h("li", {}, percent(share) + ": " + words)));
}

function detailRow(line, view) {
    const lanes = line.of.lanes / line.of.instructions;
    const requests = line.of.requests > 0 ? ", " + exact(line.of.requests) + " requests to memory" : "";
    return h("tr", {class: "detailed"}, h("td", {class: "detail", colspan: 6},
        h("p", {}, exact(line.of.instructions) + " warp instructions with " + lanes.toFixed(1) +
          " active lanes on average" + requests + ". Share of the warps’ time, modelled:"),
        describeStalls(line, view),
        line.accesses.length > 0 ? h("p", {class: "soft"}, "Recorded requests" +
            (line.accesses.length > 1 ? ", the furthest from what would do first" : "") + ":") : null,
        line.accesses.map(drawAccess)));
}

function toggle(row, line, view) {
    const open = row.classList.toggle("opened");
    row.querySelector("button").setAttribute("aria-expanded", String(open));
    if (open) {
        row.after(detailRow(line, view));
    } else {
        row.nextSibling.remove();
    }
}

function countedRow(number, code, line, view, most, worst) {
    const label = number > 0 ? number : "none";
    const row = h("tr", {class: "counted" + (line === worst ? " worst" : "")},
        h("td", {class: "number"}, h("button", {type: "button", "aria-expanded": "false",
            "aria-label": "line " + label + ": details"}, String(label))),
        h("td", {class: "code"}, code), countCells(line, view, most));
    row.addEventListener("click", () => {
        if (String(window.getSelection()) === "") {
            toggle(row, line, view);
        }
    });
    return row;
}

const quietRow = (number, code) => h("tr", {class: "quiet"},
    h("td", {class: "number"}, h("span", {class: "code"}, String(number))), h("td", {class: "code"}, code),
    [1, 2, 3, 4].map(() => h("td", {class: "none"})));

function gapRow(lines) {
    const row = h("tr", {}, h("td", {class: "gap", colspan: 6}, h("button", {type: "button",
        onclick: () => row.replaceWith(...lines.map(([number, code]) => quietRow(number, code)))},
        "⋯ " + plural(lines.length, "line") + " without instructions")));
    return row;
}

/* Rows of a file: counted lines, two lines around them, and gaps that open. */
function fileRows(file, counts, view, most, worst) {
    const AROUND = 2, rows = [];
    let hidden = [];
    const near = (number) => [...counts.keys()].some((line) => Math.abs(line - number) <= AROUND);
    const flush = () => {
        rows.push(...(hidden.length > 2 ? [gapRow(hidden)]
            : hidden.map(([number, code]) => quietRow(number, code))));
        hidden = [];
    };
    const known = file.lines.length > 0 ? file.lines
        : [...counts.keys()].sort((a, b) => a - b).map((number) => [number, ""]);
    for (const [number, code] of known) {
        if (counts.has(number)) {
            flush();
            rows.push(countedRow(number, code, counts.get(number), view, most, worst));
        } else if (near(number)) {
            flush();
            rows.push(quietRow(number, code));
        } else {
            hidden.push([number, code]);
        }
    }
    flush();
    return rows;
}

const HEADS = [["line", "left"], ["source", "left"], ["warp instr."], ["sectors\u00a0/ needed"],
               ["wavefronts\u00a0/ needed"], ["time of the warps"]];

function fileTable(name, rows) {
    return h("section", {}, h("h3", {class: "code"}, name), h("table", {class: "lines"},
        h("thead", {}, h("tr", {}, HEADS.map(([words, place]) =>
            h("th", {scope: "col", class: place || null}, words)))),
        h("tbody", {}, rows)));
}

const pathOf = (name) => name.replace(/^\.\//, "");

const nameless = (files) => files.size > 1 ? "code without a source line"
    : "no source lines: compile with -lineinfo";

function drawSource(view) {
    const lines = view.launch.lines;
    const most = Math.max(...lines.map(total), 1e-9);
    const worst = worstLine(view);
    const files = new Map();
    for (const line of lines) {
        const counts = files.get(line.of.file) || new Map();
        files.set(line.of.file, counts.set(line.of.line, line));
    }
    const time = (file) => sum([...files.get(file).values()].map(total));
    return [...files.keys()].sort((a, b) => time(b) - time(a)).map((file) => {
        const known = file < 0 ? {name: nameless(files), lines: []} : view.page.files[file];
        return fileTable(pathOf(known.name), fileRows(known, files.get(file), view, most, worst));
    });
}

/* ---- The launch as a whole ---- */

const worstLine = (view) =>
    view.launch.lines.reduce((worst, line) => total(line) > total(worst) ? line : worst,
                             view.launch.lines[0]);

function sayExcess(line) {
    for (const unit of ["sectors", "wavefronts"]) {
        if (excess(line, unit)) {
            const ratio = line.of[unit] / line.of["least_" + unit];
            return " It takes " + ratio.toFixed(1) + " times the " + unit + " that would do.";
        }
    }
    return "";
}

function verdict(view) {
    const line = worstLine(view);
    if (line === undefined) {
        return "";
    }
    const reason = line.stall.indexOf(Math.max(...line.stall));
    const where = line.of.line > 0 ? "Line " + line.of.line : "Code without a line";
    return where + " takes most: " + percent(total(line)) + " of the warps’ time, mostly " +
        view.page.stalls[reason][1] + "." + sayExcess(line);
}

function drawSummary(view) {
    const {launch, page} = view, of = launch.of;
    const shape = times(launch.grid) + " blocks of " + times(launch.block) + " threads";
    const shares = launch.stall.map((share, n) => [share, n]).filter(([share]) => share >= 0.01)
        .sort((a, b) => b[0] - a[0]).map(([share, n]) => page.stalls[n][0] + " " + percent(share));
    shares.push("start and end of blocks " + percent(of.block_share));
    return h("section", {class: "summary"}, h("h2", {title: launch.kernel}, shortName(launch.kernel)),
        h("p", {class: "soft"}, shape + ", launched " + (launch.launches === 1 ? "once" :
            launch.launches + " times") + ". Modelled: ", h("strong", {}, micros(of.ns)), ", of which " +
            micros(of.overhead_ns) + " before the first block begins."),
        h("p", {class: "verdict"}, verdict(view)),
        h("p", {}, stack([...launch.stall], page, 1), " ", shares.join(", ") + "."), legend(page));
}

function limitName(view) {
    const of = view.launch.of, blocks = product(view.launch.grid);
    const wanted = Math.ceil(blocks / view.page.device.figures.multiprocessors);
    if (wanted < of.fits) {
        return "grid";
    }
    return ["threads", "registers", "shared", "blocks"].find((name) => of["by_" + name] === of.fits);
}

function occupancyRow(name, blocks, limits, words, most) {
    return [h("span", {class: limits ? "limit" : null}, name + (limits ? " ◂ limit" : "")),
            h("span", {class: "bar"}, h("i", {style: "width:" + Math.min(100, 100 * blocks / most) + "%"})),
            h("span", {}, words)];
}

function drawOccupancy(view) {
    const {launch, page} = view, of = launch.of, figures = page.device.figures;
    const warps = Math.ceil(product(launch.block) / LANES), resident = of.resident * warps;
    const blocks = product(launch.grid), limit = limitName(view);
    const shared = of.static_shared + of.dynamic_shared;
    const rows = [["threads", of.by_threads, product(launch.block) + " a block"],
                  ["registers", of.by_registers, of.registers + " a thread"],
                  ["shared", of.by_shared, exact(shared) + " bytes a block"],
                  ["blocks", of.by_blocks, "the hardware’s most"],
                  ["grid", Math.ceil(blocks / figures.multiprocessors), plural(blocks, "block") + " in all"]];
    const most = Math.max(of.by_blocks, of.fits);
    return h("section", {}, h("h3", {}, "Occupancy"),
        h("p", {}, h("strong", {}, resident + " of " + figures.warps + " warps"), " resident on a " +
          "multiprocessor (" + percent(resident / figures.warps) + "): " + plural(of.resident, "block") +
          " of " + plural(warps, "warp") + "."),
        h("p", {class: "soft"}, "Blocks that fit on a multiprocessor, by:"),
        h("div", {class: "bars"}, rows.filter(([, fits]) => fits >= 0).map(([name, fits, words]) =>
            occupancyRow(name === "shared" ? "shared memory" : name, fits, name === limit,
                         fits + " (" + words + ")", most))));
}

/* ---- Waves ---- */

/* Multiprocessors that have the same blocks at the same time: [{count, end, parts}]; the last of
   them have none. */
function lanesOf(view) {
    const all = view.page.device.figures.multiprocessors;
    const lanes = view.launch.lanes.map(({processors, blocks, ends_ns, at_a_time}) => ({
        count: processors, blocks, end: ends_ns[ends_ns.length - 1],
        parts: ends_ns.map((end, n) => ({begin: n > 0 ? ends_ns[n - 1] : 0, end, blocks: at_a_time[n]}))}));
    const idle = all - sum(lanes.map((lane) => lane.count));
    return idle > 0 ? [...lanes, {count: idle, blocks: 0, end: 0, parts: []}] : lanes;
}

function drawLane(lane, y, height, scale, resident) {
    return lane.parts.map((part, n) => {
        const x = part.begin * scale + 40, width = (part.end - part.begin) * scale;
        return s("g", {}, s("rect", {x, y, width: Math.max(0.5, width - 0.7), height,
            class: "wave" + n % 2, opacity: (0.35 + 0.65 * part.blocks / resident).toFixed(2)}),
            s("title", {}, micros(part.begin) + " to " + micros(part.end) + ": " +
              plural(part.blocks, "block") + " at a time"),
            width > 74 && height > 14 ? text(x + 6, y + Math.min(height / 2 + 4, 16),
                plural(part.blocks, "block"), n % 2 === 0 ? "lane-left" : null) : null);
    });
}

function sayWaves(view, lanes, end) {
    const {launch, page} = view, all = page.device.figures.multiprocessors, of = launch.of;
    const blocks = product(launch.grid), places = all * of.resident;
    const idle = 1 - sum(lanes.map((lane) => lane.count * lane.end)) / (all * end);
    const waves = Math.ceil(blocks / places), last = blocks - (waves - 1) * places;
    const words = blocks < all
        ? plural(blocks, "block") + " on " + all + " multiprocessors: " + (all - blocks) +
          " have nothing to do."
        : plural(blocks, "block") + " in " + plural(waves, "wave") + " of at most " + exact(places) +
          (waves > 1 ? "; the last has " + exact(last) + " (" + percent(last / places) + ")." : ".");
    return h("p", {}, words + " ", idle > 0.005 && blocks >= all ? "Tail effect: " : null,
             idle > 0.005 ? h("span", {class: idle > 0.15 ? "bad" : null}, percent(idle) +
                              " of the multiprocessors’ time is idle.") : null);
}

function drawWaves(view) {
    const lanes = lanesOf(view), all = view.page.device.figures.multiprocessors;
    const end = Math.max(...lanes.map((lane) => lane.end));
    const width = 560, height = 170, scale = (width - 60) / end;
    const svg = s("svg", {viewBox: "0 0 " + width + " " + (height + 42), role: "img", width,
                          "aria-label": "blocks on the multiprocessors over time"});
    let y = 4;
    for (const lane of lanes) {
        const tall = height * lane.count / all, thin = tall < 10;
        svg.append(s("rect", {x: 40, y, width: width - 60, height: tall, class: "empty"}));
        svg.append(...drawLane(lane, y, thin ? tall : tall - 0.7, scale, view.launch.of.resident));
        if (!thin || lanes.length < 4) {
            svg.append(text(34, y + Math.min(tall, tall / 2 + 4), lane.count, "soft end"));
        }
        y += tall;
    }
    svg.append(text(40, height + 20, "0", "soft"), text(width - 20, height + 20, micros(end), "soft end"),
               text(40, height + 36, "Left: multiprocessors with the same blocks at the same time. Grey: idle.", "soft"));
    return h("section", {}, h("h3", {}, "Waves of blocks"), sayWaves(view, lanes, end), svg,
        h("p", {class: "soft"}, "Modelled: the next block begins where one has ended; each takes the time of its own work."));
}

/* ---- Roofline ---- */

function pointsOf(view) {
    const c = view.launch.counters, seconds = (view.launch.of.ns - view.launch.of.overhead_ns) / 1e9;
    const flops = c.flops / seconds;
    return {flops, memory: c.dram_bytes > 0 ? c.flops / c.dram_bytes : null,
            l2: c.l2_sectors > 0 ? c.flops / (c.l2_sectors * SECTOR) : null};
}

function roofLine(plot, figures, bandwidth, peak, name) {
    const ridge = peak / bandwidth;
    const [x0, x1, y0] = [plot.x0, plot.x1, plot.y0];
    const start = Math.max(x0, y0 / bandwidth);
    const points = [[start, start * bandwidth], [Math.min(Math.max(ridge, x0), x1), Math.min(peak, x1 * bandwidth)], [x1, Math.min(peak, x1 * bandwidth)]];
    return s("polyline", {class: "roof " + name, points: points.map(([x, y]) =>
        plot.x(x).toFixed(1) + "," + plot.y(y).toFixed(1)).join(" ")});
}

function makePlot(x0, x1, y0, y1) {
    const width = 560, height = 260, left = 62, bottom = 34, top = 8;
    const log = (value, low, high) => Math.log(value / low) / Math.log(high / low);
    return {x0, x1, y0, y1, width, height, left, bottom, top,
            x: (value) => left + (width - left - 14) * log(value, x0, x1),
            y: (value) => height - bottom - (height - bottom - top) * log(value, y0, y1)};
}

const round = (value) => short(value).replace(/\.?0+(?= |$)/, (zeros) => zeros.startsWith(".") ? "" : zeros);

function drawAxes(plot) {
    const parts = [];
    for (let x = plot.x0; x <= plot.x1 * 1.001; x *= 10) {
        parts.push(s("line", {class: "axis", x1: plot.x(x), x2: plot.x(x), y1: plot.top, y2: plot.height - plot.bottom}),
                   text(plot.x(x), plot.height - plot.bottom + 14, x < 1 ? String(+x.toPrecision(1)) : round(x), "soft middle"));
    }
    for (let y = plot.y0; y <= plot.y1 * 1.001; y *= 10) {
        parts.push(s("line", {class: "axis", y1: plot.y(y), y2: plot.y(y), x1: plot.left, x2: plot.width - 14}),
                   text(plot.left - 6, plot.y(y) + 4, round(y), "soft end"));
    }
    parts.push(text(plot.width - 14, plot.height - 4, "FLOP a byte", "soft end"),
               text(4, plot.height - 4, "FLOP/s", "soft"));
    return parts;
}

function drawDot(plot, intensity, flops, name, title) {
    return intensity === null ? null : s("circle", {class: "dot " + name, cx: plot.x(intensity),
        cy: plot.y(flops), r: 6}, s("title", {}, title));
}

const decade = (value, round) => Math.pow(10, round(Math.log10(value)));

function drawRoofline(view) {
    const figures = view.page.device.figures, at = pointsOf(view);
    const heading = h("h3", {}, "Roofline");
    if (view.launch.counters.flops === 0) {
        return h("section", {}, heading, h("p", {class: "soft"}, "The kernel has no floating-point operations."));
    }
    const tensor = view.launch.counters.instructions.tensor > 0 && figures.tensor_flops_per_s > 0;
    const peak = tensor ? figures.tensor_flops_per_s : figures.flops_per_s;
    const places = [at.memory, at.l2].filter((one) => one !== null);
    const plot = makePlot(Math.min(0.01, decade(Math.min(...places, 1) / 2, Math.floor)),
                          Math.max(1000, decade(Math.max(...places, 1), Math.ceil)),
                          Math.min(1e11, decade(at.flops / 2, Math.floor)), decade(peak, Math.ceil));
    const svg = s("svg", {viewBox: "0 0 " + plot.width + " " + plot.height, width: plot.width, role: "img",
                          "aria-label": "roofline with the kernel’s place"}, drawAxes(plot),
        roofLine(plot, figures, figures.l2_bytes_per_s, peak, "l2"),
        roofLine(plot, figures, figures.memory_bytes_per_s, peak, ""),
        drawDot(plot, at.l2, at.flops, "l2", "by bytes of L2"),
        drawDot(plot, at.memory, at.flops, "", "by bytes of device memory"));
    const roof = Math.min(peak, (at.memory === null ? Infinity : at.memory * figures.memory_bytes_per_s));
    return h("section", {}, heading, h("p", {}, h("strong", {}, short(at.flops) + "FLOP/s"), ", " +
        percent(at.flops / roof) + " of the roof above it (" + (tensor ? "tensor cores" : "fp32") + ": " + short(peak) + "FLOP/s)."),
        svg, h("p", {class: "soft"}, "● over bytes of device memory, ○ and dashed over bytes of L2. " +
               "Roofs and time are modelled; the launch’s overhead is left out."));
}

/* ---- Figures of one launch, or of two beside each other ---- */

const FIGURES = [
    ["time", (v) => v.launch.of.ns, micros],
    ["warp instructions", (v) => v.launch.counters.warp_instructions],
    ["floating-point operations", (v) => v.launch.counters.flops],
    ["lanes active an instruction", (v) => v.launch.counters.active_lanes / v.launch.counters.warp_instructions],
    ["global load sectors", (v) => v.launch.counters.global_load_sectors],
    ["sectors a global load", (v) => v.launch.counters.global_load_sectors / v.launch.counters.global_load_requests],
    ["global store sectors", (v) => v.launch.counters.global_store_sectors],
    ["sectors found in L1", (v) => v.launch.counters.l1_hit_sectors],
    ["sectors that reach L2", (v) => v.launch.counters.l2_sectors],
    ["bytes of device memory", (v) => v.launch.counters.dram_bytes],
    ["shared wavefronts", (v) => v.launch.counters.shared_load_wavefronts + v.launch.counters.shared_store_wavefronts],
    ["shared bank conflicts", (v) => v.launch.counters.shared_bank_conflicts],
    ["local sectors", (v) => v.launch.counters.local_sectors],
    ["barrier arrivals of warps", (v) => v.launch.counters.barriers],
    ["divergent branches", (v) => v.launch.counters.divergent_branches],
    ["registers a thread", (v) => v.launch.of.registers],
    ["resident warps", (v) => v.launch.of.resident * Math.ceil(product(v.launch.block) / LANES)],
];

function figureRow([name, read, show], views) {
    const values = views.map(read).map((value) => Number.isFinite(value) ? value : 0);
    if (values.every((value) => value === 0)) {
        return null;
    }
    const ratio = values.length > 1 && values[0] > 0 ? "× " + (values[1] / values[0]).toPrecision(3) : "";
    return h("tr", {}, h("th", {scope: "row", class: "left"}, name),
             values.map((value) => h("td", {title: exact(value)}, (show || short)(value))),
             values.length > 1 ? h("td", {class: "soft"}, ratio) : null);
}

function drawFigures(views) {
    const names = views.map((view) => shortName(view.launch.kernel) + (view.page.name ? " (" + view.page.name + ")" : ""));
    const heads = views.length > 1 ? h("thead", {}, h("tr", {}, h("th", {}),
        names.map((name) => h("th", {scope: "col"}, name)), h("th", {scope: "col"}, "ratio"))) : null;
    return h("section", {class: views.length > 1 ? "wide" : null},
        h("h3", {}, views.length > 1 ? "Beside each other" : "Counts"),
        h("div", {class: "scroll"}, h("table", {}, heads, h("tbody", {}, FIGURES.map((figure) => figureRow(figure, views))))));
}

function drawPanel(view, alone) {
    return h("div", {class: "panel"}, drawSummary(view), drawSource(view),
        h("div", {class: "halves"}, drawOccupancy(view), drawWaves(view), drawRoofline(view),
          alone ? drawFigures([view]) : null));
}

/* ---- The page ---- */

const pages = [];

const nameOf = ({page, launch}) => shortName(launch.kernel) + "  " + times(launch.grid) + " × " +
    times(launch.block) + ", " + micros(launch.of.ns) + (page.name ? " · " + page.name : "");

const viewsOf = (list) => list.flatMap((page) => page.launches.map((launch) => ({page, launch})));

function fillChoices() {
    const kernel = document.getElementById("kernel"), beside = document.getElementById("beside");
    const chosen = [kernel.value, beside.value];
    kernel.replaceChildren(...viewsOf(pages.slice(0, 1)).map((view, n) => h("option", {value: n}, nameOf(view))));
    beside.replaceChildren(h("option", {value: ""}, "nothing"),
        ...viewsOf(pages).map((view, n) => h("option", {value: n}, nameOf(view))));
    [kernel.value, beside.value] = chosen;
}

/* The worst line of a panel begins opened. */
function openWorst(panel) {
    const button = panel.querySelector("tr.worst button");
    if (button !== null) {
        button.click();
    }
}

function draw() {
    const all = viewsOf(pages), beside = document.getElementById("beside").value;
    const views = [all[Number(document.getElementById("kernel").value)]];
    if (beside !== "") {
        views.push(all[Number(beside)]);
    }
    const panels = views.map((view) => drawPanel(view, views.length === 1));
    document.body.classList.toggle("two", views.length > 1);
    document.getElementById("panels").replaceChildren(
        ...(views.length > 1 ? [drawFigures(views)] : []), ...panels);
    panels.forEach(openWorst);
}

/* The data of another x-ray page, out of its text. */
function readPage(words, name) {
    const found = new DOMParser().parseFromString(words, "text/html").getElementById("xray-data");
    const page = JSON.parse(found.textContent);
    if (page.xray !== 1 || page.launches.length === 0) {
        throw new Error("no launches");
    }
    return Object.assign(page, {name});
}

async function addPage(event) {
    const trouble = document.getElementById("trouble"), file = event.target.files[0];
    if (file === undefined) {
        return;
    }
    try {
        const count = viewsOf(pages).length;
        pages.push(readPage(await file.text(), file.name));
        fillChoices();
        document.getElementById("beside").value = String(count);
        trouble.textContent = "";
        draw();
    } catch (error) {
        trouble.textContent = file.name + " is no x-ray page with launches.";
    }
}

function sayNotes(page) {
    const notes = [
        "Each launch is the first of its kernel with this grid, block and shared memory, so caches " +
        "may be cold. At most " + page.most_launches + " are recorded" +
        (page.dropped > 0 ? "; " + exact(page.dropped) + " more launches are not shown." : "."),
        "Counts are exact for the kernel as it ran on simt; what a GPU’s counters differ by, and how " +
        "true modelled times are, is in common/simt/README.md and MODEL.md.",
        "“Needed” is what the same bytes would take if the lanes’ addresses lay side by side. Of a " +
        "line at most 4 different requests are drawn, each the first that its instruction made in " +
        "the lowest block that ran it.",
        "A line’s time counts where warps wait, as in a sampling profiler: the line that needs a " +
        "value waits for it, not the line that loads it.",
    ];
    document.getElementById("notes").replaceChildren(...notes.map((words) => h("p", {}, words)));
}

/* A kernel of the workbook itself, such as the one with which a bench empties the cache. */
const isGiven = (page, launch) => launch.lines.every(
    (line) => line.of.file < 0 || pathOf(page.files[line.of.file].name).startsWith("common/"));

/* #kernel=2&beside=0 chooses what is shown first; else the kernel with the most time. */
function begin() {
    const page = JSON.parse(document.getElementById("xray-data").textContent);
    pages.push(page);
    document.getElementById("device").textContent = "simt, modelled " + page.device.name;
    sayNotes(page);
    if (page.launches.length === 0) {
        document.getElementById("trouble").textContent = "The program launched no kernel that could be recorded.";
        return;
    }
    const wanted = new URLSearchParams(location.hash.slice(1));
    const time = page.launches.map((launch) => isGiven(page, launch) ? 0 : launch.launches * launch.of.ns);
    fillChoices();
    document.getElementById("kernel").value = wanted.get("kernel") || String(time.indexOf(Math.max(...time)));
    document.getElementById("beside").value = wanted.get("beside") || "";
    for (const id of ["kernel", "beside"]) {
        document.getElementById(id).addEventListener("change", draw);
    }
    document.getElementById("other").addEventListener("change", addPage);
    draw();
}

if (typeof document !== "undefined") {
    begin();
}
