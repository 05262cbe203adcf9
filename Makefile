# xt: builds the library, the command, the tests and the benchmark. `make help` lists what can be made.
#   DEBUG=1                  -O1 -g with assertions
#   SAN=address,undefined    sanitizers, in a build directory of their own
#   B=dir                    build directory
#   WERROR=1                 warnings are errors
#   V=1                      shows the commands; V=0 a line for each part of the work alone
#   PACK=no                  no CUDA kernels ahead of time, which take half a minute of NVRTC the first time
#   BOOTSTRAP=no             installs nothing that is missing, says what to type instead

DEBUG ?= 0
SAN   ?=
B     ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))$(if $(filter 1,$(DEBUG)),/debug)
comma := ,

CC       ?= cc
CFLAGS   ?= $(if $(SAN)$(filter 1,$(DEBUG)),-O1 -g,-O2 -g -DNDEBUG)
WARNINGS := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter
# Frames of more than a page touch every page, so that no frame steps over a thread's guard page.
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE $(WARNINGS) -fPIC -fvisibility=hidden -fstack-clash-protection -pthread -MMD -MP -Iinclude -Iruntime \
              -I$(B)/gen $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
              $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS := -pthread $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
LIBS := -ldl -lm
CHECK_LIBS = $(shell CC="$(CC)" sh tools/bootstrap.sh --check-libs)
PYTHON = $(shell sh tools/bootstrap.sh --python)

# V=0: the first file of a folder, or of an instruction set's kernels, speaks for the others.
Q := $(if $(filter-out 0,$(V)),,@)
ifeq ($(V),0)
say = @mkdir -p $(B)/said && mkdir '$(B)/said/$(subst /,-,$(or $(3),$(2)))' 2>/dev/null && printf '  %-4s %s\n' '$(1)' '$(or $(3),$(2))' || true
$(shell rm -rf $(B)/said)
else
say = $(if $(V),,@printf '  %-4s %s\n' '$(1)' '$(2)')
endif
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter 0,$(V)),-s) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))

LAYERS  ?= base graph map plan cpu cuda cache shard files api
SOURCES := $(foreach l,$(LAYERS),$(sort $(wildcard runtime/$(l)/*.c)))
OBJECTS := $(SOURCES:%.c=$(B)/obj/%.o)

# Generated sources: a file of micro-kernels a family and instruction set, the registry, the embedded CUDA
# skeletons.
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
ISAS    := scalar $(if $(findstring x86_64,$(MACHINE)),avx2 avx512)$(if $(filter aarch64-%,$(MACHINE)),neon)
ISA_FLAGS_avx2   := -mavx2 -mbmi -mbmi2 -mprfchw
ISA_FLAGS_avx512 := -mavx2 -mbmi -mbmi2 -mprfchw -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mprefer-vector-width=512
# Kernels begin on lines, wherever a change of those before them would put them. Of an instruction set's functions a
# family takes some; of the others clang says that they are unused.
KERNEL_FLAGS := -falign-functions=64 -Wno-unused-function $(if $(filter -g,$(CFLAGS)),-g1)
# gcc copies and clears structs past 256 bytes by rep movs and rep stos, which wait for the streaming stores before
# them: u8 blocks in a buffer did 0.5 to 0.9 of what they do by loops. (Zen 5, 2026-11)
NO_REP := $(foreach f,memcpy memset,-m$(f)-strategy=vector_loop:1024:noalign$(comma)libcall:-1:noalign)
NO_REP := $(shell $(CC) $(NO_REP) -E -x c /dev/null >/dev/null 2>&1 && echo '$(NO_REP)')
KERNELS  := $(shell $${PYTHON:-python3} gen/kernels.py $(ISAS) 2>/dev/null)
GEN_CPU  := $(KERNELS:%=$(B)/gen/%.c) $(B)/gen/registry.c
GEN_CUDA := $(B)/gen/skeletons.c
GEN_OBJECTS := $(if $(filter cpu,$(LAYERS)),$(GEN_CPU:.c=.o)) $(if $(filter cuda,$(LAYERS)),$(GEN_CUDA:.c=.o))

LIB_A  := $(B)/libxtview.a
LIB_SO := $(B)/libxtview.so.0
XT     := $(B)/xt
XT_CC  := $(B)/xt-cc
# Where there is an MPI for this machine's programs; MPICC=no: never.
MPICC  ?= $(shell command -v mpicc)
MPI_SO := $(if $(SAN)$(filter no,$(MPICC)),,$(if $(filter $(shell uname -m)-%,$(MACHINE)),$(if $(MPICC),$(B)/libxtview-mpi.so.0)))

TESTS     := $(sort $(wildcard tests/test_*.c) $(wildcard tests/ptx/test_*.c))
TEST_BINS := $(TESTS:%.c=$(B)/%)
DOUBLES := $(B)/tests/libcuda_double.so $(B)/tests/libnvrtc_double.so
PTX_OBJECTS := $(patsubst %.c,$(B)/obj/%.o,$(filter-out tests/ptx/test_%.c,$(wildcard tests/ptx/*.c)))
TEST_OBJECTS := $(patsubst %.c,$(B)/obj/%.o,$(filter-out tests/support/cuda_double% tests/support/nvrtc_double.c,$(wildcard tests/support/*.c))) $(PTX_OBJECTS)
BENCH_OBJECTS := $(patsubst %.c,$(B)/obj/%.o,$(filter-out bench/cmd_%.c,$(wildcard bench/*.c))) $(B)/gen/bench_workloads_text.o $(B)/gen/bench_report_html.o
EXAMPLES  := $(patsubst %.c,$(B)/%,$(wildcard examples/*.c)) $(if $(shell command -v $(CXX)),$(B)/examples/unique_ptr)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: fuzz mutation proof check-cover check-cover-run all lib serving python wheel run test test-arm test-avx512 ways machine lint clean help one gpu-check transactions transactions-check transactions-update programs bench-kernels need-build need-test

all: need-build ## the library, the command (build/xt), its compile helper and the pack of CUDA kernels beside it
	+@$(SUBMAKE) lib $(XT) $(BASE_PACK)

lib: $(LIB_A) $(LIB_SO) $(XT_CC) $(MPI_SO) $(if $(MPI_SO),$(B)/xt-mpi)

python: need-build ## the Python package, into build/python/lib: PYTHONPATH=build/python/lib python3 -c 'import xtview'
	@$(SUBMAKE) lib
	@B=$(B) sh tests/python_check.sh --build

wheel: ## a wheel of the Python package, into build/wheels; or: pip install ./python
	@$(PYTHON) -m pip wheel -q --no-deps -w $(B)/wheels ./python
	@ls -l $(B)/wheels

run: need-build ## builds, then runs a chain on a real .npy file and times it
	+@$(SUBMAKE) lib $(XT)
	@B=$(B) sh tools/demo.sh

test: need-test ## every test, side by side (JOBS=1: in turn); SAN=address,undefined under sanitizers
	+@$(SUBMAKE) lib $(XT) $(BASE_PACK) $(TEST_BINS) $(DOUBLES) $(EXAMPLES) $(B)/tests/transactions $(B)/package/stamp $(B)/tests/gpu_check $(B)/bench/serving $(if $(MPI_SO),$(MPI_PROGRAMS) $(B)/tests/mpi/shim.so)
	@B=$(B) SAN='$(SAN)' sh tests/run.sh $(TEST_BINS)

.PHONY: check-fault check-san check-mpi
# All of a test, or under a sanitizer, or on a busy machine.
SLOWER := CK_TIMEOUT_MULTIPLIER=$(or $(CK_TIMEOUT_MULTIPLIER),5)
# Programs that take a sample in `make test`; here all of it.
FAULT_TESTS := fault host nasty cache cache_place cache_shared memo helper threads stack overlap huge
check-fault: need-test ## kills and failing calls at every system call, damaged entries, hosts in trouble, nasty chains: all of it (minutes)
	+@$(SUBMAKE) $(FAULT_TESTS:%=$(B)/tests/test_%) $(DOUBLES)
	@printf '%s\n' $(FAULT_TESTS:%=$(B)/tests/test_%) | B=$(B) XT_TEST_FULL=1 V=1 JOBS=1 $(SLOWER) sh tests/tally.sh

# The kernels of every instruction set are instrumented for ASan, too, which takes most of the time; for
# ThreadSanitizer the scalar ones: what threads share is cut before any kernel runs. QUICK=1: fewer tests.
# What sanitizers add makes gcc warn of more than there is. -g1: names and lines of a report.
SAN_QUICK := cpu graph lang fuse map plan overlap huge cache cache_place cache_shared memo
ASAN_TESTS := $(SAN_QUICK) $(if $(QUICK),,kernels run parts eval sig widen index32 map_text api explain calls choice npy pack helper shard boxes cuda_api)
TSAN_TESTS := memo threads $(if $(QUICK),,cache_shared tiers)
VALGRIND_TESTS := graph map
SAN_MAKE = $(SUBMAKE) PACK=no WERROR= CFLAGS='-O1 -g1' B=$(B)/$(if $(QUICK),quick-)$(1) SAN=$(2) $(if $(QUICK)$(filter thread,$(2)),ISAS=scalar)
SAN_BESIDE = $(if $(QUICK),,$(patsubst $(B)/%,$(B)/$(1)/%,$(DOUBLES) $(XT)))
SAN_RUN = printf '%s\n' $(2:%=$(B)/$(if $(QUICK),quick-)$(1)/tests/test_%) | B=$(B)/$(if $(QUICK),quick-)$(1) $(if $(QUICK),,JOBS=1) $(SLOWER) sh tests/tally.sh
check-san: need-test ## tests under ASan with UBSan, ThreadSanitizer and, where it is installed, valgrind; QUICK=1: some of them
	+@$(call SAN_MAKE,asan,address$(comma)undefined) $(ASAN_TESTS:%=$(B)/$(if $(QUICK),quick-)asan/tests/test_%) $(call SAN_BESIDE,asan)
	@$(call SAN_RUN,asan,$(ASAN_TESTS))
	+@$(call SAN_MAKE,tsan,thread) $(TSAN_TESTS:%=$(B)/$(if $(QUICK),quick-)tsan/tests/test_%) $(call SAN_BESIDE,tsan)
	@$(call SAN_RUN,tsan,$(TSAN_TESTS))
	@$(if $(QUICK),,sh tools/bootstrap.sh san || true)
	+@$(if $(QUICK),,$(SUBMAKE) PACK=no $(LIB_SO) $(B)/tests/test_host $(VALGRIND_TESTS:%=$(B)/tests/test_%) && B=$(B) sh tests/valgrind.sh $(VALGRIND_TESTS:%=$(B)/tests/test_%) $(B)/tests/test_host:plugin)

# Beside the library of this build directory; a transport a kind of MPI.
check-mpi: need-test ## ranks by each MPI that there is: mpicc.openmpi, mpicc.mpich
	+@$(SUBMAKE) lib $(XT)
	+@for mpi in openmpi mpich; do \
	    command -v mpicc.$$mpi >/dev/null || { echo "skipped: no mpicc.$$mpi"; continue; }; \
	    d=$(B)/$$mpi; mkdir -p $$d; ln -sf ../libxtview.so.0 ../libxtview.so ../xt $$d; echo "$$mpi:"; \
	    $(SUBMAKE) -o $(LIB_SO) LIB_SO=$(LIB_SO) B=$$d MPICC=mpicc.$$mpi $$d/xt-mpi $(MPI_PROGRAMS:$(B)/%=$$d/%) $$d/tests/mpi/shim.so && \
	    B=$$d MPIRUN=mpirun.$$mpi sh tests/mpi_check.sh || exit 1; \
	done

test-arm: need-build ## the CPU tests for aarch64 (NEON), cross-compiled and run by qemu
	+@B=$(B) MAKE='$(SUBMAKE)' sh tests/arm.sh

AVX512_TESTS := kernels run eval cpu workloads
test-avx512: need-test ## the kernels of AVX-512 emulated by AVX2, where the processor lacks them
	+@$(SUBMAKE) lib $(AVX512_TESTS:%=$(B)/tests/test_%)
	@B=$(B) CC='$(CC)' sh tests/avx512.sh $(AVX512_TESTS)

ways: ## how fast this machine copies within its caches, by each way that there is (bench/ways)
	@mkdir -p $(B)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -march=native bench/ways/ways.c -o $(B)/ways
	@$(B)/ways

lint: need-build ## layers, names, headers, exported symbols, line lengths
	+@$(SUBMAKE) lib
	@$(PYTHON) gen/lint.py

need-build:
	@sh tools/bootstrap.sh build

need-test:
	@sh tools/bootstrap.sh test

# The stamp is as new as the templates; of the files those that a change of them concerns.
$(B)/gen/kernels.stamp: gen/gen.py gen/kernels.py runtime/plan/plan.h $(wildcard templates/cpu/*)
	@mkdir -p $(@D)
	$(call say,GEN,$(@D)/kernels_*.c,kernels)
	$(Q)$(PYTHON) gen/gen.py cpu --isas "$(ISAS)" --out $(B)/gen
	@touch $@

$(GEN_CPU): $(B)/gen/kernels.stamp
	@test -e $@ || $(PYTHON) gen/gen.py cpu --isas "$(ISAS)" --out $(B)/gen

$(GEN_CUDA): gen/gen.py $(wildcard templates/cuda/*)
	@mkdir -p $(@D)
	$(call say,GEN,$@,skeletons)
	$(Q)$(PYTHON) gen/gen.py cuda --out $(B)/gen
	@touch $@

$(B)/gen/bench_workloads_text.c: bench/workloads.txt
$(B)/gen/bench_report_html.c: bench/report.html
$(B)/gen/bench_workloads_text.c $(B)/gen/bench_report_html.c: gen/gen.py
	@mkdir -p $(@D)
	$(call say,GEN,$@,embedded text)
	$(Q)$(PYTHON) gen/gen.py text --file $(filter bench/%,$^) --name $(basename $(@F)) --out $(@D)
	@touch $@

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<,$(<D))
	$(Q)$(CC) $(ALL_CFLAGS) $(NO_REP) -I. -Itests -c $< -o $@

$(B)/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$<,$(if $(filter kernels_%,$*),kernels $(word 2,$(subst _, ,$*)),generated text))
	$(Q)$(CC) $(ALL_CFLAGS) $(KERNEL_FLAGS) $(ISA_FLAGS_$(word 2,$(subst _, ,$*))) -c $< -o $@

$(LIB_A): $(GEN_OBJECTS) $(OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

$(LIB_SO): $(GEN_OBJECTS) $(OBJECTS) runtime/xtview.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script,runtime/xtview.map -Wl,-z,nodelete -Wl,-z,relro,-z,now $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf $(@F) $(B)/libxtview.so

$(XT): $(patsubst %.c,$(B)/obj/%.o,$(filter-out tools/xt-cc.c,$(wildcard tools/*.c)) $(wildcard bench/cmd_*.c)) $(BENCH_OBJECTS) $(LIB_A) | $(XT_CC)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Of the transport by MPI, which is a library of its own.
MPI_FLAGS := -std=c11 -D_GNU_SOURCE $(WARNINGS) -fPIC -fvisibility=hidden -Iinclude $(CPPFLAGS) $(CFLAGS)
MPI_SOURCES := $(wildcard runtime/mpi/*.c)
$(B)/libxtview-mpi.so.0: $(MPI_SOURCES) $(wildcard runtime/mpi/*.h) include/xt/xt_mpi.h include/xt/xt_shard.h include/xt/xt.h $(LIB_SO)
	$(call say,LD,$@)
	$(Q)OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC) -shared -Wl,-soname,$(@F) -Wl,-z,relro,-z,now $(MPI_FLAGS) $(LDFLAGS) -o $@ $(MPI_SOURCES) -L$(B) -lxtview -Wl,-rpath,'$$ORIGIN'
	@ln -sf $(@F) $(B)/libxtview-mpi.so

MPI_PROGRAMS := $(addprefix $(B)/,tests/mpi/test_mpi tests/mpi/test_fault examples/mpi/transpose)
$(MPI_PROGRAMS): $(B)/%: %.c $(B)/libxtview-mpi.so.0
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC) $(MPI_FLAGS) $(LDFLAGS) -o $@ $< -L$(B) -lxtview-mpi -lxtview -Wl,-rpath,$(abspath $(B))

# Faults: tests/mpi_check.sh preloads it.
$(B)/tests/mpi/shim.so: tests/mpi/shim.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC) -shared $(MPI_FLAGS) -fvisibility=default $(LDFLAGS) -o $@ $<

# The command that mpirun starts.
$(B)/xt-mpi: $(wildcard tools/mpi/*.c) tools/mpi/job.h $(patsubst %,$(B)/obj/tools/%.o,args say bar npy input output guard) $(B)/libxtview-mpi.so.0
	$(call say,LD,$@)
	$(Q)OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC) $(MPI_FLAGS) -I. -Itools $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -L$(B) -lxtview-mpi -lxtview -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib'

# Tables beside what MPI and FFTW have: bench/notes/mpi.md.
FFTW_MPI := $(if $(wildcard /usr/include/fftw3-mpi.h),$(shell pkg-config --exists fftw3 && echo -DWITH_FFTW $$(pkg-config --cflags fftw3) -lfftw3_mpi $$(pkg-config --libs fftw3) -lm))
$(B)/bench/mpi: bench/mpi/bench_mpi.c $(B)/libxtview-mpi.so.0
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC) $(MPI_FLAGS) $(LDFLAGS) -o $@ $< $(FFTW_MPI) -L$(B) -lxtview-mpi -lxtview -Wl,-rpath,$(abspath $(B))

# The compile helper, which the library looks for beside itself, or beside the program that has it inside.
$(XT_CC): $(B)/obj/tools/xt-cc.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
	@for d in tests bench examples; do mkdir -p $(B)/$$d && ln -sf ../$(@F) $(B)/$$d/$(@F); done

$(B)/tests/%: $(B)/obj/tests/%.o $(TEST_OBJECTS) $(B)/obj/bench/workloads.o $(B)/obj/bench/chains.o $(B)/gen/bench_workloads_text.o $(B)/gen/bench_report_html.o $(LIB_A) | $(XT_CC)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter-out %.a %.so,$^) $(LIB_A) $(CHECK_LIBS) $(LIBS)

# Tests that run on a driver, or on a compiler, that is not there.
$(patsubst %,$(B)/tests/test_%,any contexts cuda_api driver pack structure tiers): $(DOUBLES)

# Tests of what the command is made of.
$(B)/tests/test_npy: $(patsubst %,$(B)/obj/tools/%.o,npy input output guard)
$(B)/tests/test_parts: $(B)/obj/tools/parts.o

# A CUDA driver for machines without one: memory is the host's, launches run in the PTX interpreter.
$(B)/tests/libcuda_double.so: $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/support/cuda_double*.c)) $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -o $@ $^

# And a runtime on it, with a header of its own, for the example that uses them.
DOUBLE_LIBS = -L$(B)/tests -lcuda_double -Wl,-rpath,$(abspath $(B)/tests)
$(B)/obj/tests/support/cudart/cudart_double.o $(B)/obj/examples/cuda_stream.o: ALL_CFLAGS += -Itests/support/cudart
$(B)/tests/libcudart_double.so: $(B)/obj/tests/support/cudart/cudart_double.o $(B)/tests/libcuda_double.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -o $@ $< $(DOUBLE_LIBS)

# An NVRTC that is slow and counts, in front of the real one.
$(B)/tests/libnvrtc_double.so: $(B)/obj/tests/support/nvrtc_double.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Everything that needs a GPU; runs elsewhere only as far as "no GPU here".
$(B)/tests/gpu_check: $(B)/obj/tests/gpu_check.o $(TEST_OBJECTS) $(BENCH_OBJECTS) $(LIB_A) | $(XT_CC)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/bench/serving: $(B)/obj/bench/serving/serving.o $(LIB_A) | $(XT_CC)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What every context finds beside the library: kernels of common structures and those that run anything, for the
# first device of each generation. Compiles are kept, so that only kernels that a change touched are made again.
# Without NVRTC there is no pack.
PACK ?= $(if $(SAN),no,yes)
PACK_ARCHS := sm_75,sm_80,sm_90,sm_100,sm_120
BASE_PACK := $(if $(filter no,$(PACK)),,$(B)/xtview.xtpack)
$(B)/xtview.xtpack: $(XT) bench/problems/base.txt
	$(call say,PACK,$@)
	$(Q)XT_JIT=generic XT_PACK= XT_CC= XT_CACHE_DIR=$(abspath $(B)/pack) $(XT) pack bench/problems/base.txt --arch $(PACK_ARCHS) -o $@ >$(B)/pack.log 2>&1 \
		|| { rm -f $@; echo "no pack of CUDA kernels: $$(cat $(B)/pack.log)"; }

serving: need-build ## xt_compile for CUDA while a sequence grows by one: 2,000 lengths; without a device on the driver double
	@$(SUBMAKE) $(B)/bench/serving $(B)/tests/libcuda_double.so $(BASE_PACK)
	@XT_PACK=$(wildcard $(BASE_PACK)) $(B)/bench/serving $(abspath $(B)/tests/libcuda_double.so) bench/problems/random.txt bench/problems/hard.txt bench/workloads.txt

gpu-check: need-build ## golden chains, workloads and random chains on the GPU, then its times beside peers: into bench/results/
	+@$(SUBMAKE) lib $(XT) $(BASE_PACK) $(B)/tests/gpu_check $(B)/bench/serving
	@B=$(B) XT_PACK=$(wildcard $(BASE_PACK)) $(PYTHON) tests/gpu_check.py

# Counts at full size what CUDA kernels ask of the memory, in the PTX interpreter.
$(B)/tests/transactions: $(B)/obj/tests/transactions.o $(TEST_OBJECTS) $(B)/obj/bench/workloads.o $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

ARCH ?= sm_90
transactions: need-build ## sectors, instructions, bytes in flight of CUDA kernels, no GPU: FILE='list list:u8' ARCH=sm_90 JSON=file
	+@$(SUBMAKE) $(B)/tests/transactions
	@$(B)/tests/transactions --arch $(ARCH) $(if $(JSON),--json $(JSON)) $(FILE)

transactions-check: need-build ## are CUDA kernels worse than bench/results/transactions-*.json? All rows, three architectures: minutes
	+@$(SUBMAKE) $(B)/tests/transactions
	@B=$(B) $(PYTHON) tests/transactions_check.py --all

transactions-update: need-build ## writes these tables anew; QUICK=1: only the rows that make test counts; AGAIN=1: those of unchanged kernels, too
	+@$(SUBMAKE) $(B)/tests/transactions
	@B=$(B) $(PYTHON) tests/transactions_check.py --update $(if $(QUICK),--quick) $(if $(AGAIN),--again)

programs: need-build ## writes tests/golden/programs.txt anew: what `git diff` shows is what a change of plans does
	+@$(SUBMAKE) $(B)/tests/test_program
	@$(B)/tests/test_program --write

# clang and its runtime; of the kernels the scalar ones alone, which build in time.
$(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/check.o $(patsubst %,$(B)/obj/tools/%.o,npy say bar guard) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -fsanitize=fuzzer $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tests/fuzz/shard: $(patsubst %,$(B)/obj/tests/support/%.o,mailbox random_graph)

proof: ## frama-c proves the checked arithmetic, and the addresses of strided boxes, for all integers (tests/proof)
	@sh tools/bootstrap.sh proof
	@sh tests/proof/run.sh

# What clang counts in the generated kernels would say nothing: they have tests for all of their shapes. Those of
# the library are taken.
COVER := -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc
COVER_TESTS = $(filter-out $(B)/tests/ptx/% %/test_stack %/test_kernels %/test_cuda %/test_structure %/test_transactions %/test_workloads,$(filter $(B)/tests/%,$(TEST_BINS)))
check-cover: need-test ## branches and conditions (MC/DC) that the tests reach: is a file worse than in tests/coverage.json? UPDATE=1 writes it
	@sh tools/bootstrap.sh cover
	+@$(SUBMAKE) lib $(XT)
	@mkdir -p $(B)/cover/gen && cp -pu $(B)/gen/kernels* $(B)/cover/gen/
	@$(XT) emit 'x: f32[2]; x' --arch sm_90 --dir $(B)/cover >/dev/null 2>&1 || sh tools/bootstrap.sh nvrtc $(B)/cover/nvrtc
	+@$(SUBMAKE) B=$(B)/cover PACK=no CC=clang-19 WARNINGS=-w CFLAGS='-O1 -g -DNDEBUG $(COVER)' LDFLAGS=-fprofile-instr-generate \
	    KERNEL_FLAGS='$(COVER:-f%=-fno-%)' check-cover-run

check-cover-run: $(LIB_SO) $(COVER_TESTS) $(XT) $(DOUBLES)
	@export LD_LIBRARY_PATH="$(abspath $(B))/nvrtc/nvidia/cu13/lib$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH}"; \
	    B=$(B) $(PYTHON) tests/cover_check.py $(if $(UPDATE),--update) $(COVER_TESTS)

FUZZ ?= line graph entry npy source shard files
# Changes the library's sources one place at a time, and puts them back.
MUTATE ?= map cache
mutation: need-test ## would the tests notice a changed operator, constant or statement? MUTATE='map cache' N=60 SEED=1
	@for folder in $(MUTATE); do B=$(B)/mutation $(PYTHON) tests/mutate.py $$folder $(or $(N),60) $(or $(SEED),1) || exit 1; done

fuzz: need-build ## libFuzzer with ASan and UBSan, each target FUZZ_SECONDS=60: FUZZ='line graph entry npy source shard files'
	@sh tools/bootstrap.sh fuzz
	+@$(SUBMAKE) $(XT)
	+@$(SUBMAKE) B=$(B)/fuzz CC=clang SAN=fuzzer-no-link,address,undefined ISAS=scalar WARNINGS=-w $(FUZZ:%=$(B)/fuzz/tests/fuzz/%)
	@B=$(B)/fuzz sh tests/fuzz/run.sh $(FUZZ)

$(B)/tests/bench_kernels: $(B)/obj/tests/bench_kernels.o $(B)/obj/tests/support/kernel_job.o $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

bench-kernels: need-build ## every CPU micro-kernel in the first cache beside its scalar row and memcpy; K=transpose: those so named
	+@$(SUBMAKE) $(B)/tests/bench_kernels
	@$(B)/tests/bench_kernels $(K)

$(B)/tests/bench_machine: $(B)/obj/tests/bench_machine.o $(B)/obj/tests/support/random_graph.o $(B)/obj/bench/workloads.o $(B)/obj/bench/chains.o $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

machine: need-build ## measures this processor and prints its row of runtime/plan/machine.c: prices, hints, habits
	+@$(SUBMAKE) $(B)/tests/bench_machine
	@$(B)/tests/bench_machine

$(B)/examples/%: $(B)/obj/examples/%.o $(LIB_A) | $(XT_CC)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

$(B)/examples/cuda_stream: $(B)/tests/libcudart_double.so
$(B)/examples/cuda_stream: LIBS += -lcudart_double $(DOUBLE_LIBS)

$(B)/examples/unique_ptr: examples/unique_ptr.cpp $(LIB_A) | $(XT_CC)
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) -std=c++11 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -Iinclude $(CPPFLAGS) $(CXXFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# ---- installing: PREFIX, DESTDIR, LIBDIR .. as tools/package/install.sh says
.PHONY: package-files install uninstall deb dist
PREFIX ?= /usr/local
VERSION = $(shell sed -n 's/^\#define XT_VERSION "\(.*\)"/\1/p' include/xt/xt.h)
export DESTDIR PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR BASHDIR ZSHDIR STRIP

$(B)/package/stamp: $(XT) $(if $(MPI_SO),$(B)/xt-mpi) $(wildcard include/xt/*.h) tools/package/pages.py
	$(call say,GEN,$(@D)/man1 man3,manual pages)
	$(Q)$(PYTHON) tools/package/pages.py --xt $(XT) $(if $(MPI_SO),--xt-mpi $(B)/xt-mpi) --out $(@D)
	@touch $@

package-files: need-build # what an install takes
	+@$(SUBMAKE) lib $(XT) $(BASE_PACK) $(B)/package/stamp

install: package-files ## command, library, headers, manual pages; PREFIX=/usr/local DESTDIR=
	@B=$(B) sh tools/package/install.sh install

uninstall: package-files ## takes away what `make install` with the same PREFIX and DESTDIR brings
	@B=$(B) sh tools/package/install.sh uninstall

deb: ## Debian packages in build/deb
	@sh tools/bootstrap.sh deb
	+@$(SUBMAKE) package-files
	@B=$(B) VERSION=$(VERSION) sh tools/package/deb.sh

dist: ## the committed sources as build/xtview-VERSION.tar.gz
	@mkdir -p $(B)
	git archive --format=tar.gz --prefix=xtview-$(VERSION)/ -o $(B)/xtview-$(VERSION).tar.gz HEAD

# One test while working on one layer: make one T=graph LAYERS="base graph" B=/tmp/mine
one: $(B)/tests/test_$(T)
	$<

clean: ## removes the build directory
	rm -rf build

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

-include $(shell find $(B) -name '*.d' 2>/dev/null)
