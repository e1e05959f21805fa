# A static binary, no shell, no root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X highwater/sidecar/app.Version=$VERSION" -o /highwater ./sidecar
RUN mkdir -m 0700 /state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /highwater /highwater
# The private key for secrets outlives the container here; every sidecar of a database needs the same one.
COPY --from=build --chown=65532:65532 /state /var/lib/highwater
VOLUME /var/lib/highwater
USER 65532:65532
ENV HIGHWATER_HTTP_ADDR=0.0.0.0:8321 HIGHWATER_KEY_FILE=/var/lib/highwater/key.asc
EXPOSE 8321
ENTRYPOINT ["/highwater"]
CMD ["serve"]
