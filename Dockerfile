# The scheduler's image: docker build -t pumice:0.1.0 .

FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && python -m venv /opt/pumice \
 && /opt/pumice/bin/pip install --no-cache-dir --constraint constraints.txt "$(echo /wheels/*.whl)[cel]" \
 && /opt/pumice/bin/python -m pip uninstall --yes pip \
 && python -m compileall -q /opt/pumice/lib

FROM python:3.13-slim
COPY --from=build /opt/pumice /opt/pumice
# Nothing is written but what --cache-dump-dir names; bytecode was made above.
ENV PATH=/opt/pumice/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
EXPOSE 8080 11251
ENTRYPOINT ["pumice", "scheduler"]
