// A VexRiscv core on one memory, and a device that says which part of the work a cycle belongs to.
//
//   bench IMAGE FIRST BURST WRITE [PROFILE]
//
// FIRST, BURST and WRITE are cycles: of a read, of each further word of a line, of a write. Instructions and
// data share the memory, which serves one word at a time, data first. With PROFILE that file gets the
// cycles of each instruction, by its address.
//
//   0xf000_0000           a byte of the name of what is measured
//   0xf000_0004           runs: prints the name, and the cycles of each part per run (nothing with 0);
//                         begins anew
//   0x0010_0000           ends it, as the test device of QEMU's board virt does
//
// Where `addi zero, zero, 0x100 + n` retires, part n begins; 0 is not counted.
#include "VVexRiscv.h"
#include "VVexRiscv_VexRiscv.h"
#include "VVexRiscv___024root.h"
#include <cstdio>
#include <cstdlib>
#include <elf.h>
#include <fstream>
#include <map>
#include <string>
#include <vector>

static const uint32_t RAM = 0x40000000, DEVICE = 0xf0000000, TEST_DEVICE = 0x00100000;
static const uint64_t LIMIT = 100'000'000; // cycles
static const int PARTS = 6;
static std::vector<uint8_t> ram(256 << 10);

[[noreturn]] static void fail(const std::string &what) {
    fprintf(stderr, "bench: %s\n", what.c_str());
    exit(1);
}

static uint32_t *word(uint32_t address) {
    uint32_t at = (address - RAM) & ~3u;
    return at < ram.size() ? reinterpret_cast<uint32_t *>(&ram[at]) : nullptr;
}

static void load(const char *path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> elf((std::istreambuf_iterator<char>(file)), {});
    if (elf.size() < sizeof(Elf32_Ehdr)) fail(std::string("no image: ") + path);
    auto *head = reinterpret_cast<Elf32_Ehdr *>(elf.data());
    auto *segment = reinterpret_cast<Elf32_Phdr *>(elf.data() + head->e_phoff);
    for (int n = 0; n < head->e_phnum; n++, segment++) {
        if (segment->p_type != PT_LOAD || !segment->p_filesz) continue;
        uint32_t at = segment->p_paddr - RAM;
        if (at + segment->p_filesz > ram.size()) fail("the image is larger than the memory");
        std::copy_n(elf.data() + segment->p_offset, segment->p_filesz, ram.data() + at);
    }
}

struct Parts {
    std::string name;
    uint64_t cycles[PARTS] = {}, since = 0;
    int part = 0;

    void begin(int next, uint64_t now) {
        cycles[part] += now - since;
        part = next, since = now;
    }

    void report(uint32_t runs) {
        if (runs) {
            printf("%s", name.c_str());
            for (int n = 1; n < PARTS; n++) printf(" %llu", (cycles[n] + runs / 2ull) / runs);
            printf("\n");
            name.clear();
        }
        std::fill_n(cycles, PARTS, 0);
    }
};

int main(int count, char **argument) {
    if (count < 5) fail("usage: bench IMAGE FIRST BURST WRITE [PROFILE]");
    load(argument[1]);
    const int first = atoi(argument[2]), burst = atoi(argument[3]), write = atoi(argument[4]);
    VVexRiscv core;
    core.externalResetVector = RAM;
    core.reset = 1;

    enum { NOBODY, DATA, CODE } served = NOBODY;
    int left = 0;
    Parts parts;
    std::map<uint32_t, uint64_t> profile;
    uint64_t last = 0;

    for (uint64_t now = 0; now < LIMIT; now++) {
        core.clk = 0;
        core.iBusWishbone_ACK = core.dBusWishbone_ACK = 0;
        core.eval();
        const bool data = core.dBusWishbone_CYC && core.dBusWishbone_STB;
        const bool code = core.iBusWishbone_CYC && core.iBusWishbone_STB;
        const uint32_t at = core.dBusWishbone_ADR << 2, value = core.dBusWishbone_DAT_MOSI;
        if (served == NOBODY && data) {
            served = DATA;
            left = !word(at) ? 1 : core.dBusWishbone_WE ? write : first;
        } else if (served == NOBODY && code) {
            served = CODE, left = first;
        }
        if (served == DATA && data && --left == 0) {
            core.dBusWishbone_ACK = 1;
            if (uint32_t *there = word(at)) {
                core.dBusWishbone_DAT_MISO = *there;
                for (int n = 0; core.dBusWishbone_WE && n < 4; n++) {
                    if (core.dBusWishbone_SEL >> n & 1) ram[at - RAM + n] = value >> 8 * n;
                }
            } else if (!core.dBusWishbone_WE) {
                fail("a read beyond the memory, at " + std::to_string(at));
            } else if (at == TEST_DEVICE) {
                if (count > 5) {
                    std::ofstream file(argument[5]);
                    for (auto [pc, cycles] : profile) file << pc << ' ' << cycles << '\n';
                }
                return value == 0x5555 ? 0 : value >> 16;
            } else if (at == DEVICE) {
                parts.name += static_cast<char>(value);
            } else if (at == DEVICE + 4) {
                parts.report(value);
            } else {
                fail("a write beyond the memory, at " + std::to_string(at));
            }
            left = burst;
            if (core.dBusWishbone_CTI != 2) served = NOBODY;
        } else if (served == CODE && code && --left == 0) {
            // What is fetched ahead may lie beyond the memory.
            uint32_t *there = word(core.iBusWishbone_ADR << 2);
            core.iBusWishbone_DAT_MISO = there ? *there : 0;
            core.iBusWishbone_ACK = 1;
            left = burst;
            if (core.iBusWishbone_CTI != 2) served = NOBODY;
        }
        core.eval();
        if (const auto *inside = core.rootp->VexRiscv; inside->lastStageIsFiring) {
            if (parts.part) profile[inside->lastStagePc] += now - last;
            last = now;
            const uint32_t part = (inside->lastStageInstruction >> 20) - 0x100;
            if ((inside->lastStageInstruction & 0xfffff) == 0x13 && part < PARTS) parts.begin(part, now);
        }
        core.clk = 1;
        core.eval();
        core.reset = now < 8;
    }
    fail("no end after " + std::to_string(LIMIT) + " cycles");
}
