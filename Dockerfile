# Millrace as an image: `trainer`, libtorch, Open MPI and sshd, and nothing that only builds need.
#
#   docker build -t millrace:cpu .
#   docker build -t millrace:cuda --build-arg CUDA=1 --build-arg FROM=ubuntu:24.04 \
#     --build-arg BUILD_FROM=nvidia/cuda:13.0.2-devel-ubuntu24.04 .
#   docker run --rm -v "$PWD":/work -w /work millrace:cpu run /opt/millrace/share/millrace/configs/maskrcnn.toml
#   docker run --rm --gpus all --ipc=host ... millrace:cuda ...
#
# Both stages must be of one distribution. CUDA's libraries come with libtorch; of the host, the driver alone is used.
#
# Not built with docker: none was at hand. docs/scaling.md says which of these commands have run elsewhere.
ARG FROM=debian:12-slim
ARG BUILD_FROM=${FROM}

FROM ${BUILD_FROM} AS build
ARG CUDA=0
# For each step: `make build` sets up too, and no GPU is visible here.
ENV MILLRACE_CUDA=${CUDA}
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make python3-pip
WORKDIR /src
COPY scripts scripts
RUN scripts/setup
COPY . .
RUN make build && cmake --install build/release --prefix /opt/millrace \
  && scripts/docker/gather /opt/millrace \
  && if [ "$CUDA" = 1 ]; then ls /opt/millrace/lib/libtorch_cuda.so /opt/millrace/lib/millrace/plugins/millrace_cuda.so; fi

FROM ${FROM}
COPY --from=build /opt/millrace /opt/millrace
RUN apt-get update && xargs -a /opt/millrace/packages apt-get install -y --no-install-recommends \
  && rm -rf /var/lib/apt/lists/* \
  && ln -s /opt/millrace/bin/trainer /usr/local/bin/trainer \
  && /opt/millrace/share/millrace/docker/ssh
# mpirun of Open MPI refuses to be root unless told twice; a container's root is.
ENV MILLRACE_TRAINER=/opt/millrace/bin/trainer OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["trainer"]
